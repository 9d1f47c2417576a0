package conformance

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"cloud.google.com/go/bigtable"
	"cloud.google.com/go/bigtable/apiv2/bigtablepb"

	"github.com/tidemark-go/tidemark/internal/proof/testkit"
)

// letters creates a table with the rows a to j, of one cell each.
func (e *env) letters(id string) *bigtable.Table {
	tbl := e.create(id, "f")
	for c := 'a'; c <= 'j'; c++ {
		e.put(tbl, string(c), fmt.Sprintf("f:q@1=%c", c))
	}
	return tbl
}

func (e *env) keys(tbl bigtable.TableAPI, rows bigtable.RowSet, opts ...bigtable.ReadOption) string {
	e.Helper()
	var out []string
	err := tbl.ReadRows(e.ctx, rows, func(r bigtable.Row) bool {
		out = append(out, r.Key())
		return true
	}, opts...)
	if err != nil {
		e.Fatalf("read: %v", err)
	}
	return strings.Join(out, "")
}

func TestRanges(t *testing.T) {
	each(t, func(t *testing.T, e *env) {
		tbl := e.letters("t")
		e.put(tbl, "c\x00", "f:q@1=between")
		for _, tt := range []struct {
			name string
			rows bigtable.RowSet
			want string
		}{
			{"all", bigtable.InfiniteRange(""), "abcc\x00defghij"},
			{"from", bigtable.InfiniteRange("h"), "hij"},
			{"closed open", bigtable.NewClosedOpenRange("b", "d"), "bcc\x00"},
			{"closed", bigtable.NewClosedRange("b", "d"), "bcc\x00d"},
			{"open", bigtable.NewOpenRange("b", "d"), "cc\x00"},
			{"open closed", bigtable.NewOpenClosedRange("b", "d"), "cc\x00d"},
			{"open start, closed end at a row", bigtable.NewOpenClosedRange("b", "c"), "c"},
			{"a prefix", bigtable.PrefixRange("c"), "cc\x00"},
			{"no row in the range", bigtable.NewRange("x", "z"), ""},
			{"one key", bigtable.SingleRow("d"), "d"},
			{"one missing key", bigtable.SingleRow("dd"), ""},
			{"keys, unsorted and twice", bigtable.RowList{"d", "a", "zz", "d", "b"}, "abd"},
			{"ranges, unsorted and overlapping", bigtable.RowRangeList{
				bigtable.NewRange("g", "i"), bigtable.NewRange("a", "c"),
				bigtable.NewRange("b", "d"),
			}, "abcc\x00gh"},
			{"touching ranges", bigtable.RowRangeList{bigtable.NewRange("a", "b"), bigtable.NewClosedRange("b", "b")}, "ab"},
		} {
			want(t, e.keys(tbl, tt.rows), tt.want, tt.name+": a read returns the wrong rows")
			reversed := e.keys(tbl, tt.rows, bigtable.ReverseScan())
			forward := strings.Split(strings.ReplaceAll(tt.want, "c\x00", "C"), "")
			slices.Reverse(forward)
			want(t, strings.ReplaceAll(reversed, "c\x00", "C"), strings.Join(forward, ""),
				tt.name+", reversed: a read returns the wrong rows")
		}
	})
}

// Keys and ranges of one request form one set of rows.
func TestRangesWithKeys(t *testing.T) {
	each(t, func(t *testing.T, e *env) {
		e.letters("t")
		req := &bigtablepb.ReadRowsRequest{TableName: tableName("t"), Rows: &bigtablepb.RowSet{
			RowKeys: [][]byte{[]byte("i"), []byte("b"), []byte("c"), []byte("i")},
			RowRanges: []*bigtablepb.RowRange{
				{
					StartKey: &bigtablepb.RowRange_StartKeyOpen{StartKeyOpen: []byte("b")},
					EndKey:   &bigtablepb.RowRange_EndKeyClosed{EndKeyClosed: []byte("e")},
				},
				{
					StartKey: &bigtablepb.RowRange_StartKeyClosed{StartKeyClosed: []byte("d")},
					EndKey:   &bigtablepb.RowRange_EndKeyOpen{EndKeyOpen: []byte("f")},
				},
			},
		}}
		want(t, e.rawKeys(req), "bcdei", "a read returns the wrong rows")
		req.RowsLimit = 3
		want(t, e.rawKeys(req), "bcd", "a limit over keys and ranges counts wrongly")
		req.Rows = &bigtablepb.RowSet{}
		want(t, e.rawKeys(req), "abc", "an empty set of rows is the whole table")
		req.Rows = nil
		want(t, e.rawKeys(req), "abc", "no set of rows is the whole table")
		req.Rows = &bigtablepb.RowSet{RowRanges: []*bigtablepb.RowRange{{}}}
		want(t, e.rawKeys(req), "abc", "a range without ends is the whole table")
	})
}

// rawKeys sends a raw request and returns the keys of the rows in the answer.
func (e *env) rawKeys(req *bigtablepb.ReadRowsRequest) string {
	e.Helper()
	stream, err := e.data.ReadRows(e.ctx, req)
	if err != nil {
		e.Fatal(err)
	}
	var out []string
	key := ""
	for {
		resp, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return strings.Join(out, "")
		}
		if err != nil {
			e.Fatal(err)
		}
		for _, c := range resp.Chunks {
			if len(c.RowKey) > 0 {
				key = string(c.RowKey)
			}
			if c.GetCommitRow() {
				out = append(out, key)
			}
		}
	}
}

func TestLimits(t *testing.T) {
	each(t, func(t *testing.T, e *env) {
		tbl := e.letters("t")
		e.put(tbl, "bb", "f:other@1=x")
		rows := bigtable.RowRangeList{bigtable.NewRange("b", "d"), bigtable.NewRange("f", "h")}
		with := bigtable.RowFilter(bigtable.ColumnFilter("q"))
		reverse := bigtable.ReverseScan()
		for _, tt := range []struct {
			name string
			rows bigtable.RowSet
			opts []bigtable.ReadOption
			want string
		}{
			{"first", bigtable.InfiniteRange(""), []bigtable.ReadOption{bigtable.LimitRows(1)}, "a"},
			{"over ranges", rows, []bigtable.ReadOption{bigtable.LimitRows(4)}, "bbbcf"},
			{"more than there are rows", rows, []bigtable.ReadOption{bigtable.LimitRows(99)}, "bbbcfg"},
			{"counts rows that pass the filter", rows, []bigtable.ReadOption{bigtable.LimitRows(3), with}, "bcf"},
			{"reversed", bigtable.InfiniteRange(""), []bigtable.ReadOption{bigtable.LimitRows(2), reverse}, "ji"},
			{"reversed over ranges", rows, []bigtable.ReadOption{bigtable.LimitRows(3), reverse}, "gfc"},
			{"reversed with a filter", rows, []bigtable.ReadOption{bigtable.LimitRows(4), reverse, with}, "gfcb"},
			{"reversed up to a key", bigtable.InfiniteReverseRange("c"), []bigtable.ReadOption{bigtable.LimitRows(2), reverse}, "cbb"},
		} {
			want(t, e.keys(tbl, tt.rows, tt.opts...), tt.want, tt.name+": a limited read returns the wrong rows")
		}
	})
}

// A reversed scan reverses the order of rows, not of the cells in a row.
func TestReverseKeepsCellsInOrder(t *testing.T) {
	each(t, func(t *testing.T, e *env) {
		tbl := e.create("t", "a", "b")
		e.put(tbl, "r", "a:p@1=x", "a:p@2=y", "b:q@1=z", "a:z@1=w")
		e.put(tbl, "s", "a:p@1=x")
		want(t, e.scan(tbl, bigtable.InfiniteRange(""), bigtable.ReverseScan()),
			"s a:p@1=x; r a:p@2=y a:p@1=x a:z@1=w b:q@1=z", "a reversed scan changes a row")
	})
}

func TestMissingRowIsNil(t *testing.T) {
	each(t, func(t *testing.T, e *env) {
		tbl := e.letters("t")
		for _, key := range []string{"aa", "0", "zz"} {
			if r, err := tbl.ReadRow(e.ctx, key); r != nil || err != nil {
				t.Errorf("reading a missing row: got %v, %v, want nil, nil", r, err)
			}
		}
	})
}

// A row whose last cell was deleted does not exist: reads do not return it, and no predicate matches it.
func TestRowWithoutCellsIsGone(t *testing.T) {
	each(t, func(t *testing.T, e *env) {
		e.needs(faultEmptyRows)
		tbl := e.create("t", "f")
		e.put(tbl, "r", "f:p@1=x", "f:q@1=x")
		m := bigtable.NewMutation()
		m.DeleteCellsInColumn("f", "p")
		m.DeleteTimestampRange("f", "q", ms(0), ms(9))
		e.apply(tbl, "r", m)
		want(t, e.all(tbl), "", "a row without cells is read")
		keys, err := tbl.SampleRowKeys(e.ctx)
		if err != nil || slices.Contains(keys, "r") {
			t.Errorf("a row without cells is in the samples: %v, %v", keys, err)
		}
		var matched bool
		none := bigtable.NewCondMutation(bigtable.PassAllFilter(), set("f:p@1=x"), set("f:p@2=x"))
		if err := tbl.Apply(e.ctx, "r", none, bigtable.GetCondMutationResult(&matched)); err != nil || matched {
			t.Errorf("a row without cells matches a predicate: %v, %v", matched, err)
		}
	})
}

// Read statistics show users when a read scans more than it returns.
func TestStats(t *testing.T) {
	each(t, func(t *testing.T, e *env) {
		tbl := e.letters("t")
		e.put(tbl, "c", "f:other@1=x")
		var got *bigtable.FullReadStats
		stats := bigtable.WithFullReadStats(func(s *bigtable.FullReadStats) { got = s })
		e.keys(tbl, bigtable.NewRange("b", "f"), stats, bigtable.RowFilter(bigtable.ColumnFilter("other")))
		if got == nil {
			t.Fatal("got no statistics although the read requested them")
		}
		s := got.ReadIterationStats
		if s.RowsSeenCount != 4 || s.RowsReturnedCount != 1 || s.CellsReturnedCount != 1 {
			t.Errorf("a read that scanned 4 rows and returned 1 row of 1 cell: got %+v", s)
		}
		e.keys(tbl, bigtable.InfiniteRange(""), stats, bigtable.LimitRows(2))
		if s := got.ReadIterationStats; s.RowsSeenCount != 2 || s.RowsReturnedCount != 2 {
			t.Errorf("a read of 2 rows: got %+v, want it to stop at its limit", s)
		}
	})
}

// Keys are bytes. No byte in them is special.
func TestKeysAreBytes(t *testing.T) {
	each(t, func(t *testing.T, e *env) {
		tbl := e.create("t", "f")
		keys := []string{"\x00", "\x00\x00", "\x00\x01", "\x00\xff", "\x01", "a", "a\x00", "a\x00\x00b", "a\x01", "ab", "é", "\xfe", "\xff", "\xff\x00", "\xff\xff"}
		for _, k := range slices.Backward(keys) {
			e.put(tbl, k, "f:q@1=x")
		}
		var got []string
		read := func(opts ...bigtable.ReadOption) string {
			got = nil
			if err := tbl.ReadRows(e.ctx, bigtable.InfiniteRange(""), func(r bigtable.Row) bool {
				got = append(got, r.Key())
				return true
			}, opts...); err != nil {
				t.Fatal(err)
			}
			return fmt.Sprintf("%q", got)
		}
		want(t, read(), fmt.Sprintf("%q", keys), "rows are not ordered by the bytes of their keys")
		slices.Reverse(keys)
		want(t, read(bigtable.ReverseScan()), fmt.Sprintf("%q", keys), "rows are not ordered by the bytes of their keys")
		for _, k := range keys {
			want(t, e.scan(tbl, bigtable.SingleRow(k)), k+" f:q@1=x", "a row cannot be read by its key")
		}
	})
}

// Qualifiers are bytes too. A qualifier that is a prefix of another names another column.
func TestQualifiersAreBytes(t *testing.T) {
	each(t, func(t *testing.T, e *env) {
		tbl := e.create("t", "f")
		quals := []string{"", "\x00", "\x00\x00", "\x00\x01", "\x00\xff", "\x01", "a", "a\x00", "a\x00b", "aa", "\xff", "\xff\xff"}
		m := bigtable.NewMutation()
		for _, q := range slices.Backward(quals) {
			for ts := range int64(3) {
				m.Set("f", q, ms(ts), []byte(q))
			}
		}
		e.apply(tbl, "r", m)
		var got, wanted []string
		r, err := tbl.ReadRow(e.ctx, "r")
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range r["f"] {
			got = append(got, fmt.Sprintf("%q@%d=%q", c.Column, c.Timestamp, c.Value))
		}
		for _, q := range quals {
			for _, ts := range []int64{2, 1, 0} {
				wanted = append(wanted, fmt.Sprintf("%q@%d=%q", "f:"+q, ms(ts), q))
			}
		}
		want(t, strings.Join(got, " "), strings.Join(wanted, " "), "columns mix or come out of order")
		for _, q := range quals {
			r, err := tbl.ReadRow(e.ctx, "r", bigtable.RowFilter(bigtable.ColumnFilter(quoteBytes(q))))
			if err != nil || len(r["f"]) != 3 || string(r["f"][0].Value) != q {
				t.Errorf("reading column %q: got %v, %v", q, r, err)
			}
		}
		d := bigtable.NewMutation()
		d.DeleteCellsInColumn("f", "a")
		d.DeleteCellsInColumn("f", "\x00")
		e.apply(tbl, "r", d)
		if r, err = tbl.ReadRow(e.ctx, "r"); err != nil || len(r["f"]) != 3*(len(quals)-2) {
			t.Errorf("after deleting two columns: got %d cells, want %d: %v", len(r["f"]), 3*(len(quals)-2), err)
		}
	})
}

// quoteBytes returns the pattern that matches exactly s.
func quoteBytes(s string) string {
	var out strings.Builder
	for _, b := range []byte(s) {
		fmt.Fprintf(&out, `\x%02x`, b)
	}
	return out.String()
}

func TestSampleRowKeys(t *testing.T) {
	each(t, func(t *testing.T, e *env) {
		tbl := e.letters("t")
		keys, err := tbl.SampleRowKeys(e.ctx)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.IsSorted(keys[:max(len(keys)-1, 0)]) {
			t.Errorf("got samples %q, want them in order", keys)
		}
	})
}

// A value near the size limit arrives complete, over any number of messages.
func TestLargeValues(t *testing.T) {
	testkit.Plain(t)
	each(t, func(t *testing.T, e *env) {
		tbl := e.create("t", "f")
		big := strings.Repeat("0123456789abcdef", 1<<16*7)
		for i := range 3 {
			m := bigtable.NewMutation()
			m.Set("f", "q", ms(1), []byte(big))
			m.Set("f", "r", ms(1), []byte("small"))
			e.apply(tbl, fmt.Sprintf("r%d", i), m)
		}
		n := 0
		if err := tbl.ReadRows(e.ctx, bigtable.InfiniteRange(""), func(r bigtable.Row) bool {
			if len(r["f"]) != 2 || string(r["f"][0].Value) != big || string(r["f"][1].Value) != "small" {
				t.Errorf("row %s: got another value than was written", r.Key())
			}
			n++
			return true
		}); err != nil || n != 3 {
			t.Errorf("got %d rows, %v", n, err)
		}
	})
}
