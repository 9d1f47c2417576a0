package bench

import (
	"context"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// BenchmarkSilent finds the devices without a point for a minute among 1,000 with 100 points each: latest reads the
// newest point of each with PrefixReader.Latest, and sdk calls Silent.
func BenchmarkSilent(b *testing.B) {
	store, _ := tsdbtest.Open(b, tsdbtest.Options{}, readings)
	repo := readings.For(store, acme)
	fillFleet(b, repo, "berlin", 1000, 100)
	ctx, soon := context.Background(), time.Now().Add(time.Hour)
	b.Run("latest", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			drained(b, repo.Under(tsdb.AllEntities()).Latest(ctx), 1000)
		}
	})
	b.Run("sdk", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if silent, err := repo.Under(tsdb.AllEntities()).Silent(ctx, soon, 100); err != nil || len(silent) != 100 {
				b.Fatal(len(silent), err)
			}
		}
	})
}

// BenchmarkRangeUnder reads 60 of the 600 points of each of 200 devices with 5 ms on each call: loop calls Range for
// each of them, entities and merged read them with PrefixReader.
func BenchmarkRangeUnder(b *testing.B) {
	const devices, points = 200, 60
	store, conn := tsdbtest.Open(b, tsdbtest.Options{}, readings)
	repo := readings.For(store, acme)
	known := fillFleet(b, repo, "berlin", devices, 600)
	newest, err := repo.Latest(context.Background(), known[0])
	if err != nil {
		b.Fatal(err)
	}
	in := tsdb.Since(newest.Time.Add(-(points - 1) * time.Second))
	conn.Inject(tsdbtest.Delay(5 * time.Millisecond))
	ctx := context.Background()
	b.Run("loop", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			for _, e := range known {
				drained(b, repo.Range(ctx, e, in), points)
			}
		}
	})
	b.Run("entities", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			drained(b, repo.Under(tsdb.AllEntities()).Range(ctx, in), devices*points)
		}
	})
	b.Run("merged", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			drained(b, repo.Under(tsdb.AllEntities()).Merged(ctx, in), devices*points)
		}
	})
}

// drained reads a sequence to its end, and checks its number of points.
func drained(b *testing.B, seq func(func(tsdb.Point[reading], error) bool), want int) {
	b.Helper()
	n := 0
	for _, err := range seq {
		if err != nil {
			b.Fatal(err)
		}
		n++
	}
	if n != want {
		b.Fatalf("%d points, want %d", n, want)
	}
}
