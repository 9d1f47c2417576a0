package conformance

import (
	"bytes"
	"fmt"
	"testing"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/internal/proof/testkit"
)

// Rows that a program retains do not change while it reads on. Written rows do not change when the program reuses its
// buffers.
func TestMemoryIsNotShared(t *testing.T) {
	each(t, func(t *testing.T, e *env) {
		n := 3000 / testkit.Stride(10)
		tbl := e.create("t", "f")
		buffer, qualifier := make([]byte, 64), []byte("q")
		value := func(i int) []byte { return fmt.Appendf(nil, "%064d", i) }
		for i := range 50 {
			m := bigtable.NewMutation()
			copy(buffer, value(i))
			m.Set("f", string(qualifier), ms(1), buffer)
			if err := tbl.Apply(e.ctx, fmt.Sprintf("r%05d", i), m); err != nil {
				t.Fatal(err)
			}
			clear(buffer)
		}
		keys, muts, values := make([]string, n), make([]*bigtable.Mutation, n), make([][]byte, n)
		for i := range n {
			keys[i], muts[i], values[i] = fmt.Sprintf("r%05d", i), bigtable.NewMutation(), value(i)
			muts[i].Set("f", "q", ms(1), values[i])
		}
		if errs, err := tbl.ApplyBulk(e.ctx, keys[50:], muts[50:]); errs != nil || err != nil {
			t.Fatal(errs, err)
		}
		for _, v := range values {
			clear(v)
		}
		var kept []bigtable.Row
		for range 2 {
			for _, opts := range [][]bigtable.ReadOption{nil, {bigtable.ReverseScan()}, {bigtable.RowFilter(bigtable.ChainFilters(
				bigtable.FamilyFilter("f"), bigtable.LatestNFilter(1)))}} {
				if err := tbl.ReadRows(e.ctx, bigtable.InfiniteRange(""), func(r bigtable.Row) bool {
					kept = append(kept, r)
					return true
				}, opts...); err != nil {
					t.Fatal(err)
				}
			}
			if err := e.admin.DropAllRows(e.ctx, "t"); err != nil {
				t.Fatal(err)
			}
			for i := range n {
				muts[i] = bigtable.NewMutation()
				muts[i].Set("f", "q", ms(2), value(n+i))
			}
			if errs, err := tbl.ApplyBulk(e.ctx, keys, muts); errs != nil || err != nil {
				t.Fatal(errs, err)
			}
		}
		if len(kept) != 6*n {
			t.Fatalf("got %d rows, want %d", len(kept), 6*n)
		}
		for i, r := range kept {
			at, round := i%n, i/(3*n)
			if i/n%3 == 1 {
				at = n - 1 - at
			}
			if r.Key() != keys[at] || len(r["f"]) != 1 || !bytes.Equal(r["f"][0].Value, value(at+round*n)) || r["f"][0].Column != "f:q" {
				t.Fatalf("retained row %d is now %s, want the row of %s", i, showRow(r), keys[at])
			}
		}
	})
}

// A row with many columns and versions arrives complete and in order, over any number of messages, and filters apply to
// all of it.
func TestWideRows(t *testing.T) {
	testkit.Plain(t)
	each(t, func(t *testing.T, e *env) {
		const columns, versions = 5000, 300
		tbl := e.create("t", "f", "g")
		for from := 0; from < columns; from += 1000 {
			m := bigtable.NewMutation()
			for i := from; i < from+1000; i++ {
				m.Set("f", fmt.Sprintf("q%06d", i), ms(1), bytes.Repeat([]byte{byte(i)}, 200))
			}
			e.apply(tbl, "wide", m)
		}
		m := bigtable.NewMutation()
		for v := range int64(versions) {
			m.Set("g", "q", ms(v), fmt.Appendf(nil, "%d", v))
		}
		e.apply(tbl, "wide", m)
		e.put(tbl, "narrow", "f:q@1=v")
		e.put(tbl, "x", "f:q@1=v")
		count := func(f bigtable.Filter, opts ...bigtable.ReadOption) string {
			out := ""
			if f != nil {
				opts = append(opts, bigtable.RowFilter(f))
			}
			if err := tbl.ReadRows(e.ctx, bigtable.InfiniteRange(""), func(r bigtable.Row) bool {
				out += fmt.Sprintf("%s %d+%d ", r.Key(), len(r["f"]), len(r["g"]))
				for i, c := range r["f"] {
					if i > 0 && c.Column <= r["f"][i-1].Column {
						t.Errorf("got column %s after %s", c.Column, r["f"][i-1].Column)
					}
				}
				for i, c := range r["g"] {
					if i > 0 && c.Timestamp >= r["g"][i-1].Timestamp {
						t.Errorf("got version %d after %d", c.Timestamp, r["g"][i-1].Timestamp)
					}
				}
				return true
			}, opts...); err != nil {
				t.Fatal(err)
			}
			return out
		}
		want(t, count(nil), "narrow 1+0 wide 5000+300 x 1+0 ", "a wide row is not whole")
		want(t, count(nil, bigtable.ReverseScan()), "x 1+0 wide 5000+300 narrow 1+0 ", "a wide row is not whole, reversed")
		want(t, count(bigtable.LatestNFilter(1)), "narrow 1+0 wide 5000+1 x 1+0 ", "the latest of a wide row")
		want(t, count(bigtable.ColumnRangeFilter("f", "q001000", "q001010")), "wide 10+0 ", "a range of a wide row")
		want(t, count(bigtable.ChainFilters(bigtable.FamilyFilter("g"), bigtable.LatestNFilter(7)), bigtable.ReverseScan()), "wide 0+7 ", "the latest versions, reversed")
		want(t, count(bigtable.ChainFilters(bigtable.FamilyFilter("f"), bigtable.CellsPerRowOffsetFilter(4990))), "wide 10+0 ", "the end of a wide row")
		want(t, count(bigtable.ValueFilter("299")), "wide 0+1 ", "one value of a wide row")
	})
}
