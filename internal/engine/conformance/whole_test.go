package conformance

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"
)

// A reader sees each row as one write left it, even while the row is overwritten.
func TestReadersSeeWholeRows(t *testing.T) {
	each(t, func(t *testing.T, e *env) {
		e.needs(faultStreams)
		tbl := e.create("t", "a", "b")
		const rows = 20
		version := func(n int64) *bigtable.Mutation {
			m := bigtable.NewMutation()
			m.DeleteRow()
			for i := range 5 {
				m.Set("a", fmt.Sprintf("q%d", i), ms(n), fmt.Appendf(nil, "%d", n))
				m.Set("b", fmt.Sprintf("q%d", i), ms(n), fmt.Appendf(nil, "%d", n))
			}
			return m
		}
		for i := range rows {
			e.apply(tbl, fmt.Sprintf("r%02d", i), version(0))
		}
		ctx, cancel := context.WithTimeout(e.ctx, 400*time.Millisecond)
		defer cancel()
		var wg sync.WaitGroup
		for w := range 2 {
			wg.Go(func() {
				for n := int64(1); ctx.Err() == nil; n++ {
					if err := tbl.Apply(e.ctx, fmt.Sprintf("r%02d", n%rows), version(2*n+int64(w))); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Go(func() {
			for n := int64(1); ctx.Err() == nil; n++ {
				var keys []string
				var muts []*bigtable.Mutation
				for i := range rows {
					keys, muts = append(keys, fmt.Sprintf("r%02d", i)), append(muts, version(1_000_000+n))
				}
				if errs, err := tbl.ApplyBulk(e.ctx, keys, muts); errs != nil || err != nil {
					t.Error(errs, err)
				}
			}
		})
		for _, opts := range [][]bigtable.ReadOption{nil, {bigtable.ReverseScan()}} {
			wg.Go(func() {
				for ctx.Err() == nil {
					seen := 0
					err := tbl.ReadRows(e.ctx, bigtable.InfiniteRange(""), func(r bigtable.Row) bool {
						seen++
						if len(r["a"]) != 5 || len(r["b"]) != 5 {
							t.Errorf("got part of a row: %s", showRow(r))
							return false
						}
						for _, c := range append(r["a"], r["b"]...) {
							if string(c.Value) != string(r["a"][0].Value) {
								t.Errorf("got a row with cells of two writes: %s", showRow(r))
								return false
							}
						}
						return true
					}, opts...)
					if err != nil || seen != rows {
						t.Errorf("got %d of %d rows: %v", seen, rows, err)
						return
					}
				}
			})
		}
		wg.Wait()
	})
}
