package tsdb_test

import (
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tenants"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// TestWhatHasExpiredInTheOldClass: conditional writes ignore a point that has expired in the tenant's old class,
// although its new class would keep it. No part of it reappears with the new point, in the row or in the head.
func TestWhatHasExpiredInTheOldClass(t *testing.T) {
	for name, opts := range map[string]tsdb.SchemaOptions{
		"merge":       {Merge: true},
		"merge heads": {Merge: true, Head: tsdb.Head{Points: 2}},
		"first":       {FirstWins: true},
		"first heads": {FirstWins: true, Head: tsdb.Head{Points: 2}},
		"absent":      {},
		"only":        {Head: tsdb.Head{Points: 2, Only: true}},
	} {
		t.Run(name, func(t *testing.T) {
			longBubble(t, func(t *testing.T) {
				opts.Retention, opts.Classes, opts.Precision = gc.Class{Name: "h1", Policy: gc.MaxAge(time.Hour)}, []gc.Class{month}, tsdb.Milliseconds
				s, err := tsdb.Define("r", tsdb.Key("a", "b"), codec.Records(), opts)
				if err != nil {
					t.Fatal(err)
				}
				store, _, table := tsdbtest.OpenTable(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Cache: tsdb.CacheOptions{Entries: 10}}}, s)
				r, at := s.For(store, acme), time.Now()
				if err := r.Put(t.Context(), roof, at, rec("old", 1)); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Hour + time.Millisecond)
				assign(t, store, acme, tenants.Profile{Retention: "d30"})
				if stored, err := r.PutIfAbsent(t.Context(), roof, at, rec("new", 2)); err != nil || !stored {
					t.Fatalf("PutIfAbsent = %v, %v; want true", stored, err)
				}
				if opts.Merge || opts.FirstWins {
					if err := r.Put(t.Context(), roof, at, rec("new", 2)); err != nil {
						t.Fatal(err)
					}
				}
				for _, stale := range []tsdb.MaxStale{0, tsdb.MaxStale(time.Hour)} {
					answers, err := latestMany(t.Context(), r, []tsdb.Entity{roof}, stale)
					if err != nil || answers[0].Err != nil || answers[0].Point.Value.String() != rec("new", 2).String() {
						t.Errorf("%v, %v", answers, err)
					}
				}
				p, err := r.Get(t.Context(), roof, at)
				if err != nil || p.Value.String() != rec("new", 2).String() {
					t.Errorf("%v, %v", p, err)
				}
				for family := range inClasses(t, table, acme) {
					if family != "d30" && family != "d30.h2" {
						t.Errorf("family %s still has cells: %v", family, inClasses(t, table, acme))
					}
				}
				if n, err := r.DeletePrefix(t.Context(), tsdb.AllEntities()); err != nil || n != 1 || len(inClasses(t, table, acme)) != 0 {
					t.Errorf("%d, %v, %v", n, err, inClasses(t, table, acme))
				}
			})
		})
	}
}
