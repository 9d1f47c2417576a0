package bench

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/internal/clock"
	"github.com/tidemark-go/tidemark/internal/engine"
	"github.com/tidemark-go/tidemark/internal/inside"
	"github.com/tidemark-go/tidemark/internal/local"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/rollup"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

// shifted is a clock that runs ahead.
type shifted struct{ by atomic.Int64 }

func (s *shifted) Now() time.Time { return time.Now().Add(time.Duration(s.by.Load())) }

// rolledStore opens a store with a schema on an engine.
func rolledStore(b *testing.B, opts engine.Options, c *shifted, s tsdb.Dataset) *tsdb.Store {
	b.Helper()
	opts.Clock, opts.Steady = c.Now, clock.Follow(c.Now)
	server, err := local.Open(opts)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = server.Close() })
	store := open(b, server, func(client *bigtable.Client, admin *bigtable.AdminClient) *tsdb.Store {
		st, err := tsdb.New(client, table, tsdb.Options{StoreOptions: tsdb.StoreOptions{Clock: c.Now}, Admin: admin})
		if err != nil {
			b.Fatal(err)
		}
		return st
	})
	b.Cleanup(func() { _ = store.Close() })
	in, err := inside.Of(store).Internals()
	if err != nil {
		b.Fatal(err)
	}
	in.Service.Use(server.Watch())
	if err := store.Ensure(context.Background(), s); err != nil {
		b.Fatal(err)
	}
	return store
}

func rolledSchema(rollups ...tsdb.Rollup) *tsdb.Schema[reading] {
	return tsdb.MustDefine("rolled", tsdb.Key("site", "device"), codec.JSON[reading](), tsdb.SchemaOptions{Rollups: rollups})
}

func rolledMeasures() []rollup.Measure[reading] {
	return []rollup.Measure[reading]{
		{Name: "temp_c", Of: func(r reading) (float64, bool) { return r.TempC, true }, Decimals: 2, Max: 1000},
	}
}

// work makes passes until nothing is marked.
func work(b *testing.B, store *tsdb.Store, c *shifted, s *tsdb.Schema[reading]) {
	b.Helper()
	w, err := rollup.NewWorker(store, rollup.WorkerOptions{}, s)
	if err != nil {
		b.Fatal(err)
	}
	for {
		c.by.Add(int64(48 * time.Hour)) // all buckets are closed, and old enough
		p, err := w.Pass(context.Background())
		if err != nil {
			b.Fatal(err)
		}
		if p.Marks == 0 && p.Waiting == 0 {
			return
		}
	}
}

// BenchmarkIngestRollups measures writing the points of a hundred devices, a second apart, through a writer to an
// engine on disk: without rollups, and with three, by minute, hour and day, each derived from the one before. Dirty
// marks are written with the points. The cases kinds have the increase of a counter and a sketch in place of sums. The
// cases worked also count computing and storing all buckets.
func BenchmarkIngestRollups(b *testing.B) {
	const devices = 100
	three := func(measures []rollup.Measure[reading]) []tsdb.Rollup {
		return []tsdb.Rollup{
			rollup.MustDefine("min", window.Every(time.Minute), measures, rollup.Options{}),
			rollup.MustDefine("hour", window.Every(time.Hour), measures, rollup.Options{From: "min"}),
			rollup.MustDefine("day", window.Days(1), measures, rollup.Options{From: "hour"}),
		}
	}
	kinds := []rollup.Measure[reading]{
		{Name: "counter", Kind: window.Counter, Of: func(r reading) (float64, bool) { return r.Humidity, true }, Decimals: 2, Max: 1e9},
		{Name: "temp_c", Of: func(r reading) (float64, bool) { return r.TempC, true }, Decimals: 2, Max: 1000, Aggregates: window.Quantiles},
	}
	entities := make([]tsdb.Entity, devices)
	for i := range entities {
		entities[i] = tsdb.NewEntity("berlin", fmt.Sprint("roof-", i))
	}
	run := func(name string, worked bool, rollups ...tsdb.Rollup) {
		b.Run(name, func(b *testing.B) {
			c, s := &shifted{}, rolledSchema(rollups...)
			store := rolledStore(b, engine.Options{Dir: b.TempDir()}, c, s)
			w, err := store.NewWriter(tsdb.WriterOptions{})
			if err != nil {
				b.Fatal(err)
			}
			ctx, base, in := context.Background(), time.Now().Add(-24*time.Hour), s.For(store, acme).Via(w)
			b.ReportAllocs()
			n := 0
			for b.Loop() {
				at := base.Add(time.Duration(n/devices) * time.Second)
				if err := in.Enqueue(ctx, entities[n%devices], at, reading{float64(n%4000) / 100, float64(n / devices)}); err != nil {
					b.Fatal(err)
				}
				n++
			}
			b.StartTimer() // what is still on its way counts
			if err := w.Close(ctx); err != nil {
				b.Fatal(err)
			}
			if worked {
				work(b, store, c, s)
			}
			b.StopTimer()
			pointsPerSecond(b, n)
		})
	}
	run("off", false)
	run("three", false, three(rolledMeasures())...)
	run("kinds", false, three(kinds)...)
	run("worked", true, three(rolledMeasures())...)
	run("kinds_worked", true, three(kinds)...)
}

// BenchmarkRollupRead measures reading a month of a device's minute readings by hour: from its points, and from the
// rollup.
func BenchmarkRollupRead(b *testing.B) {
	const minutes = 30 * 24 * 60
	hour := rollup.MustDefine("hour", window.Every(time.Hour), rolledMeasures(), rollup.Options{})
	c, s := &shifted{}, rolledSchema(hour)
	store := rolledStore(b, engine.Options{}, c, s)
	repo := s.For(store, acme)
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	points := make([]tsdb.Point[reading], minutes)
	for i := range points {
		points[i] = tsdb.Point[reading]{Entity: roof, Time: start.Add(time.Duration(i) * time.Minute), Value: reading{float64(i % 40), 40}}
	}
	ctx := context.Background()
	if _, err := repo.PutMany(ctx, points); err != nil {
		b.Fatal(err)
	}
	work(b, store, c, s)
	in := tsdb.Between(start, start.Add(minutes*time.Minute))
	check := func(b *testing.B, hours int, sum float64) {
		if hours != minutes/60 || sum != minutes*19.5 {
			b.Fatalf("got %d hours with a sum of %v", hours, sum)
		}
	}
	b.Run("raw", func(b *testing.B) {
		byHour, err := window.New(window.Every(time.Hour), []window.Measure[reading]{
			{Name: "temp_c", Of: func(r reading) (float64, bool) { return r.TempC, true }},
		}, window.Options{FromPoints: true})
		if err != nil {
			b.Fatal(err)
		}
		b.ReportAllocs()
		for b.Loop() {
			hours, sum := 0, 0.0
			for bucket, err := range byHour.Read(ctx, repo, roof, in, tsdb.OldestFirst) {
				if err != nil {
					b.Fatal(err)
				}
				hours++
				sum += bucket.Values[0].Sum
			}
			check(b, hours, sum)
		}
	})
	b.Run("rollup", func(b *testing.B) {
		reader := rollup.For(hour, repo)
		b.ReportAllocs()
		for b.Loop() {
			hours, sum := 0, 0.0
			for bucket, err := range reader.Buckets(ctx, roof, in, tsdb.OldestFirst) {
				if err != nil {
					b.Fatal(err)
				}
				hours++
				sum += bucket.Values[0].Sum
			}
			check(b, hours, sum)
		}
	})
}
