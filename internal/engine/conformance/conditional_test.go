package conformance

import (
	"fmt"
	"sync"
	"testing"

	"cloud.google.com/go/bigtable"
	"cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc/codes"
)

func TestConditionalMutation(t *testing.T) {
	each(t, func(t *testing.T, e *env) {
		tbl := e.create("t", "a", "b")
		e.put(tbl, "r", "a:p@2=x", "a:p@1=old")
		for _, tt := range []struct {
			name    string
			row     string
			cond    bigtable.Filter
			then    *bigtable.Mutation
			other   *bigtable.Mutation
			matched bool
			want    string
		}{
			{"a missing row", "n", bigtable.PassAllFilter(), nil, set("a:p@1=first"), false, "n a:p@1=first"},
			{"the same row, now stored", "n", bigtable.PassAllFilter(), set("a:p@2=second"), set("a:p@1=again"), true, "n a:p@2=second a:p@1=first"},
			{"by value", "r", bigtable.ValueFilter("x"), set("b:p@1=yes"), set("b:p@1=no"), true, "r a:p@2=x a:p@1=old b:p@1=yes"},
			{
				"by the latest value", "r", bigtable.ChainFilters(bigtable.LatestNFilter(1), bigtable.ValueFilter("old")),
				set("b:p@1=wrong"), set("b:p@2=right"), false, "r a:p@2=x a:p@1=old b:p@2=right b:p@1=yes",
			},
			{"no mutation for the outcome", "r", bigtable.BlockAllFilter(), set("b:p@1=wrong"), nil, false, "r a:p@2=x a:p@1=old b:p@2=right b:p@1=yes"},
		} {
			var matched bool
			m := bigtable.NewCondMutation(tt.cond, tt.then, tt.other)
			if err := tbl.Apply(e.ctx, tt.row, m, bigtable.GetCondMutationResult(&matched)); err != nil {
				t.Fatalf("%s: %v", tt.name, err)
			}
			if matched != tt.matched {
				t.Errorf("%s: got predicate result %v, want %v", tt.name, matched, tt.matched)
			}
			want(t, e.scan(tbl, bigtable.SingleRow(tt.row)), tt.want, tt.name+": the wrong branch was written")
		}
	})
}

func TestConditionalWithoutPredicate(t *testing.T) {
	each(t, func(t *testing.T, e *env) {
		tbl := e.create("t", "a")
		for _, wantMatch := range []bool{false, true} {
			resp, err := e.data.CheckAndMutateRow(e.ctx, &bigtablepb.CheckAndMutateRowRequest{
				TableName: tableName("t"), RowKey: []byte("r"),
				TrueMutations: []*bigtablepb.Mutation{setCell("a", "q", 2000, "there")}, FalseMutations: []*bigtablepb.Mutation{setCell("a", "q", 1000, "new")},
			})
			if err != nil || resp.PredicateMatched != wantMatch {
				t.Fatalf("got %v, %v, want %v: without a predicate, any stored row matches", resp, err, wantMatch)
			}
		}
		want(t, e.all(tbl), "r a:q@2=there a:q@1=new", "the wrong branch was written")
	})
}

// If many clients insert the same row at once, exactly one succeeds.
func TestConditionalIsAtomic(t *testing.T) {
	each(t, func(t *testing.T, e *env) {
		tbl := e.create("t", "a")
		const writers, rounds = 8, 10
		won := make([]int, writers)
		var wg sync.WaitGroup
		for w := range writers {
			wg.Go(func() {
				for i := range rounds {
					var there bool
					m := bigtable.NewCondMutation(bigtable.PassAllFilter(), nil, set(fmt.Sprintf("a:p@1=%d", w)))
					if err := tbl.Apply(e.ctx, fmt.Sprintf("r%02d", i), m, bigtable.GetCondMutationResult(&there)); err != nil {
						t.Error(err)
						return
					}
					if !there {
						won[w]++
					}
				}
			})
		}
		wg.Wait()
		total := 0
		for _, n := range won {
			total += n
		}
		if total != rounds {
			t.Errorf("%d inserts of %d rows reported that they were first", total, rounds)
		}
	})
}

func TestReadModifyWrite(t *testing.T) {
	each(t, func(t *testing.T, e *env) {
		e.needs(faultServerTime)
		tbl := e.create("t", "a", "b")
		e.put(tbl, "r", "a:p@1=ab")
		m := bigtable.NewReadModifyWrite()
		m.AppendValue("a", "p", []byte("cd"))
		m.AppendValue("a", "p", []byte("ef"))
		m.Increment("b", "n", 5)
		m.Increment("b", "n", -7)
		got, err := tbl.ApplyReadModifyWrite(e.ctx, "r", m)
		if err != nil {
			t.Fatal(err)
		}
		now := int64(e.clock.timestamp()) / 1000
		two := "\xff\xff\xff\xff\xff\xff\xff\xfe"
		want(t, showRow(got), fmt.Sprintf("r a:p@%d=abcdef b:n@%d=%s", now, now, two), "the answer is not the new cells")
		want(t, e.all(tbl), fmt.Sprintf("r a:p@%d=abcdef a:p@1=ab b:n@%d=%s", now, now, two), "the new cells are not stored")

		// A cell with a future timestamp stays the newest.
		e.put(tbl, "f", fmt.Sprintf("a:p@%d=x", now+1000))
		m = bigtable.NewReadModifyWrite()
		m.AppendValue("a", "p", []byte("y"))
		if got, err = tbl.ApplyReadModifyWrite(e.ctx, "f", m); err != nil {
			t.Fatal(err)
		}
		want(t, showRow(got), fmt.Sprintf("f a:p@%d=xy", now+1000), "an append is hidden by a cell with a future timestamp")
	})
}

func TestReadModifyWriteRefused(t *testing.T) {
	each(t, func(t *testing.T, e *env) {
		e.needs(faultCodes, faultAtomicity)
		tbl := e.create("t", "a")
		e.put(tbl, "r", "a:p@1=short")
		both := func(f func(m *bigtable.ReadModifyWrite)) *bigtable.ReadModifyWrite {
			m := bigtable.NewReadModifyWrite()
			m.AppendValue("a", "fresh", []byte("x"))
			f(m)
			return m
		}
		_, err := tbl.ApplyReadModifyWrite(e.ctx, "r", both(func(m *bigtable.ReadModifyWrite) { m.Increment("a", "p", 1) }))
		if err == nil {
			t.Error("incrementing a value that is no number: got nil, want an error")
		}
		_, err = tbl.ApplyReadModifyWrite(e.ctx, "r", both(func(m *bigtable.ReadModifyWrite) { m.Increment("none", "p", 1) }))
		wantCode(t, err, codes.NotFound, "an unknown family")
		_, err = tbl.ApplyReadModifyWrite(e.ctx, "", both(func(*bigtable.ReadModifyWrite) {}))
		wantCode(t, err, codes.InvalidArgument, "an empty key")
		_, err = tbl.ApplyReadModifyWrite(e.ctx, "r", bigtable.NewReadModifyWrite())
		wantCode(t, err, codes.InvalidArgument, "no rules")
		want(t, e.all(tbl), "r a:p@1=short", "a refused request was stored in part")
	})
}

// No increment of concurrent writers is lost.
func TestIncrementsAllCount(t *testing.T) {
	each(t, func(t *testing.T, e *env) {
		tbl := e.create("t", "a")
		const writers, each = 8, 25
		var wg sync.WaitGroup
		for range writers {
			wg.Go(func() {
				for range each {
					m := bigtable.NewReadModifyWrite()
					m.Increment("a", "n", 1)
					if _, err := tbl.ApplyReadModifyWrite(e.ctx, "r", m); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		wg.Wait()
		r, err := tbl.ReadRow(e.ctx, "r", bigtable.RowFilter(bigtable.LatestNFilter(1)))
		if err != nil || len(r["a"]) != 1 {
			t.Fatal(r, err)
		}
		if got := decode(r["a"][0].Value); got != writers*each {
			t.Errorf("after %d increments: got %d", writers*each, got)
		}
	})
}
