package bench

import (
	"context"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/internal/engine"
	"github.com/tidemark-go/tidemark/internal/local"
	"github.com/tidemark-go/tidemark/tsdb"
)

// setupCached is setup with a last-value cache.
func setupCached(b *testing.B) *tsdb.Repository[reading] {
	b.Helper()
	server, err := local.Open(engine.Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = server.Close() })
	store := open(b, server, func(c *bigtable.Client, a *bigtable.AdminClient) *tsdb.Store {
		s, err := tsdb.New(c, table, tsdb.Options{StoreOptions: tsdb.StoreOptions{Cache: tsdb.CacheOptions{Entries: 100_000}}, Admin: a})
		if err != nil {
			b.Fatal(err)
		}
		return s
	})
	b.Cleanup(func() { _ = store.Close() })
	if err := store.Ensure(context.Background(), readings); err != nil {
		b.Fatal(err)
	}
	return readings.For(store, acme)
}

// BenchmarkCachedLatest measures reads of a device's newest point: from the table, as in BenchmarkLatest/sdk, from
// memory, and from memory on all processors at once.
func BenchmarkCachedLatest(b *testing.B) {
	repo := setupCached(b)
	fill(b, repo, 1000)
	ctx := context.Background()
	check := func(b *testing.B, opts ...tsdb.ReadOption) {
		if p, err := repo.Latest(ctx, roof, opts...); err != nil || p.Value.TempC != 21.5 {
			b.Error(p, err)
		}
	}
	b.Run("table", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			check(b)
		}
	})
	b.Run("memory", func(b *testing.B) {
		b.ReportAllocs()
		stale := tsdb.MaxStale(time.Minute)
		for b.Loop() {
			check(b, stale)
		}
	})
	b.Run("parallel", func(b *testing.B) {
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			stale := tsdb.MaxStale(time.Minute)
			for pb.Next() {
				check(b, stale)
			}
		})
	})
}

// BenchmarkCachedLatestMany measures reads of the newest points of 500 devices from memory.
func BenchmarkCachedLatestMany(b *testing.B) {
	repo := setupCached(b)
	devices := fillFleet(b, repo, "berlin", 500, 10)
	b.ReportAllocs()
	for b.Loop() {
		if answers, err := repo.LatestMany(context.Background(), devices, 1, tsdb.MaxStale(time.Minute)); err != nil || len(answers) != len(devices) {
			b.Fatal(err)
		}
	}
}

// BenchmarkPutBesideACache measures puts of a device whose newest point is cached, so each put also updates the cache.
func BenchmarkPutBesideACache(b *testing.B) {
	for _, kept := range []bool{false, true} {
		name := "none"
		if kept {
			name = "kept"
		}
		b.Run(name, func(b *testing.B) {
			repo, _ := setup(b, engine.Options{})
			if kept {
				repo = setupCached(b)
			}
			at := fill(b, repo, 10)
			if _, err := repo.Latest(context.Background(), roof, tsdb.MaxStale(time.Minute)); err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				at = at.Add(time.Millisecond)
				if err := repo.Put(context.Background(), roof, at, reading{21.5, 40}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
