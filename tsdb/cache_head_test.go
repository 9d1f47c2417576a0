package tsdb_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/internal/inside"
	"github.com/tidemark-go/tidemark/internal/store/lastvalue"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// TestCacheWithHeads: with heads, or heads only, the cache returns what the table holds, after writes and deletions of
// each kind.
func TestCacheWithHeads(t *testing.T) {
	for _, only := range []bool{false, true} {
		t.Run(fmt.Sprintf("only=%v", only), func(t *testing.T) {
			s, err := tsdb.Define("readings", tsdb.Key("site", "device"), codec.JSON[reading](), tsdb.SchemaOptions{
				Precision: tsdb.Milliseconds, Head: tsdb.Head{Points: 3, Only: only},
			})
			if err != nil {
				t.Fatal(err)
			}
			store, conn := tsdbtest.Open(t, cached, s)
			repo := s.For(store, acme)
			w := writer(t, store, tsdb.WriterOptions{Linger: -1})
			stale := tsdb.MaxStale(time.Minute)
			at := func(i int) time.Time { return start.Add(time.Duration(i) * time.Second) }
			agree := func(step string) {
				t.Helper()
				for range 2 { // the second time from memory
					p, err := repo.Latest(t.Context(), roof, stale)
					q, qerr := repo.Latest(t.Context(), roof)
					if p != q || !errors.Is(err, qerr) {
						t.Fatalf("%s: %v, %v from memory, %v, %v from the table", step, p, err, q, qerr)
					}
				}
				n := reads(conn, func() {
					if _, err := latestMany(t.Context(), repo, []tsdb.Entity{roof}, stale); err != nil {
						t.Errorf("%s: %v", step, err)
					}
				})
				if n != 0 {
					t.Errorf("%s: %d reads for a cached point, want 0", step, n)
				}
			}
			do := func(step string, err error) {
				t.Helper()
				if err != nil {
					t.Fatalf("%s: %v", step, err)
				}
				agree(step)
			}
			agree("nothing")
			do("Put", repo.Put(t.Context(), roof, at(1), reading{1}))
			do("overwrite", repo.Put(t.Context(), roof, at(1), reading{2}))
			do("late", repo.Put(t.Context(), roof, at(0), reading{3}))
			_, err = repo.PutMany(t.Context(), []tsdb.Point[reading]{{Entity: roof, Time: at(5), Value: reading{4}}, {Entity: roof, Time: at(4), Value: reading{5}}})
			do("PutMany", err)
			_, err = repo.PutIfAbsent(t.Context(), roof, at(6), reading{6})
			do("PutIfAbsent", err)
			_, err = repo.PutIfAbsent(t.Context(), roof, at(6), reading{7})
			do("PutIfAbsent of what is there", err)
			_, err = repo.Via(w).EnqueueMany(t.Context(), []tsdb.Point[reading]{{Entity: roof, Time: at(7), Value: reading{8}}})
			do("through a writer", err)
			do("Delete", repo.Delete(t.Context(), roof, at(7)))
			_, err = repo.DeleteRange(t.Context(), roof, tsdb.Since(at(6)))
			do("DeleteRange", err)
			_, err = repo.DeletePrefix(t.Context(), tsdb.NewPrefix("berlin"))
			do("DeletePrefix", err)
		})
	}
}

// cacheOf returns the last-value cache of a store.
func cacheOf(t *testing.T, store *tsdb.Store) *lastvalue.Cache {
	t.Helper()
	in, err := inside.Of(store).Internals()
	if err != nil {
		t.Fatal(err)
	}
	return in.Cache
}
