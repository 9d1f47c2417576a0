package bench

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/internal/engine"
	"github.com/tidemark-go/tidemark/internal/sketch"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/rollup"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

// BenchmarkQuantile finds the 99th percentile of a month of readings, one a minute: by sorting the numbers of the
// points, by the sketch of the points, and from a rollup by days that comes from one by hours.
func BenchmarkQuantile(b *testing.B) {
	const days, minutes = 30, 30 * 24 * 60
	number := func(r reading) (float64, bool) { return r.TempC, true }
	kept := []rollup.Measure[reading]{{Name: "ms", Of: number, Decimals: 3, Max: 1e9, Aggregates: window.Quantiles}}
	hour := rollup.MustDefine("hour", window.Every(time.Hour), kept, rollup.Options{})
	day := rollup.MustDefine("day", window.Days(1), kept, rollup.Options{From: "hour"})
	c, s := &shifted{}, rolledSchema(hour, day)
	store := rolledStore(b, engine.Options{}, c, s)
	repo := s.For(store, acme)
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	points := make([]tsdb.Point[reading], minutes)
	for i := range points { // 1 ms to 10 s, most of them short
		points[i] = tsdb.Point[reading]{Entity: roof, Time: start.Add(time.Duration(i) * time.Minute), Value: reading{TempC: 10_000 / float64(1+i*i%9973)}}
	}
	ctx := context.Background()
	if _, err := repo.PutMany(ctx, points); err != nil {
		b.Fatal(err)
	}
	work(b, store, c, s)
	work(b, store, c, s) // the days
	in := tsdb.Between(start, start.AddDate(0, 0, days))
	exact := func(b *testing.B) float64 {
		numbers := make([]float64, 0, minutes)
		for p, err := range repo.Range(ctx, roof, in, tsdb.OldestFirst) {
			if err != nil {
				b.Fatal(err)
			}
			numbers = append(numbers, p.Value.TempC)
		}
		slices.Sort(numbers)
		return numbers[len(numbers)*99/100-1]
	}
	want := exact(b)
	run := func(name string, p99 func(b *testing.B) float64) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if got := p99(b); got < want*(1-sketch.Error)-0.001 || got > want*(1+sketch.Error)+0.001 {
					b.Fatalf("the 99th percentile is %v, want %v", got, want)
				}
			}
		})
	}
	run("exact", exact)
	month, err := window.New(window.Months(1), []window.Measure[reading]{{Name: "ms", Of: number, Aggregates: window.Quantiles}}, window.Options{FromPoints: true})
	if err != nil {
		b.Fatal(err)
	}
	run("sketch", func(b *testing.B) (p99 float64) {
		for bucket, err := range month.Read(ctx, repo, roof, in, tsdb.OldestFirst) {
			if err != nil {
				b.Fatal(err)
			}
			p99 = bucket.Values[0].Quantile(0.99)
		}
		return p99
	})
	run("rollup", func(b *testing.B) float64 {
		total, err := rollup.For(day, repo).Total(ctx, roof, in)
		if err != nil {
			b.Fatal(err)
		}
		return total.Values[0].Quantile(0.99)
	})
}

// BenchmarkSketchAdd adds a number to a sketch.
func BenchmarkSketchAdd(b *testing.B) {
	var s sketch.Sketch
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		s.Add(10_000 / float64(1+i*i%9973))
	}
}
