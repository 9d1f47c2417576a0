package bench

import (
	"context"
	"iter"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/internal/engine"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/rollup"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

// BenchmarkMonthIncrease reads how much a counter counted on each day of a month of readings, one a minute: from the
// points, and from a rollup by days that comes from one by hours.
func BenchmarkMonthIncrease(b *testing.B) {
	const days, minutes = 30, 30 * 24 * 60
	units := func(r reading) (int64, bool) { return int64(r.TempC), true }
	kept := []rollup.Measure[reading]{{Name: "kwh", Kind: window.Counter, Int: units, Decimals: 3, Max: 1e9}}
	hour := rollup.MustDefine("hour", window.Every(time.Hour), kept, rollup.Options{})
	day := rollup.MustDefine("day", window.Days(1), kept, rollup.Options{From: "hour"})
	c, s := &shifted{}, rolledSchema(hour, day)
	store := rolledStore(b, engine.Options{}, c, s)
	repo := s.For(store, acme)
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	points := make([]tsdb.Point[reading], 0, minutes+1)
	for i := -1; i < minutes; i++ { // one before the month
		points = append(points, tsdb.Point[reading]{Entity: roof, Time: start.Add(time.Duration(i) * time.Minute), Value: reading{TempC: float64(10 + i)}})
	}
	ctx := context.Background()
	if _, err := repo.PutMany(ctx, points); err != nil {
		b.Fatal(err)
	}
	work(b, store, c, s)
	work(b, store, c, s) // the days
	in := tsdb.Between(start, start.AddDate(0, 0, days))
	sum := func(b *testing.B, buckets func() iter.Seq2[window.Bucket, error]) {
		b.ReportAllocs()
		for b.Loop() {
			read, total := 0, 0.0
			for bucket, err := range buckets() {
				if err != nil {
					b.Fatal(err)
				}
				read++
				total += bucket.Values[0].Increase
			}
			if read != days || total < minutes/1000.-1e-9 || total > minutes/1000.+1e-9 {
				b.Fatalf("%d days with an increase of %v, want %d with %v", read, total, days, minutes/1000.)
			}
		}
	}
	b.Run("raw", func(b *testing.B) {
		daily, err := window.New(window.Days(1), []window.Measure[reading]{{Name: "kwh", Kind: window.Counter, Int: units, Decimals: 3}}, window.Options{FromPoints: true})
		if err != nil {
			b.Fatal(err)
		}
		sum(b, func() iter.Seq2[window.Bucket, error] { return daily.Read(ctx, repo, roof, in, tsdb.OldestFirst) })
	})
	b.Run("rollup", func(b *testing.B) {
		reader := rollup.For(day, repo)
		sum(b, func() iter.Seq2[window.Bucket, error] { return reader.Buckets(ctx, roof, in, tsdb.OldestFirst) })
	})
}
