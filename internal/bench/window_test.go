package bench

import (
	"context"
	"fmt"
	"iter"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

// BenchmarkWindow measures the aggregation of 100,000 points, one a minute, by hour: by hand, with only the mean,
// minimum and maximum in UTC, and with the SDK.
func BenchmarkWindow(b *testing.B) {
	const n = 100_000
	points := make([]tsdb.Point[reading], n)
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for i := range points {
		points[i] = tsdb.Point[reading]{Time: start.Add(time.Duration(i) * time.Minute), Value: reading{TempC: float64(i % 40), Humidity: 40}}
	}
	seq := func(yield func(tsdb.Point[reading], error) bool) {
		for i := range points {
			if !yield(points[i], nil) {
				return
			}
		}
	}
	const hours = (n + 59) / 60
	each := func(b *testing.B, got int) {
		if got != hours {
			b.Fatalf("got %d buckets, want %d", got, hours)
		}
	}
	perPoint := func(b *testing.B) {
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/point")
	}
	b.Run("byhand", func(b *testing.B) {
		b.ReportAllocs()
		type bucket struct {
			start         time.Time
			count         int
			sum, min, max float64
		}
		for b.Loop() {
			var out []bucket
			for p := range seq {
				x := p.Value.TempC
				hour := p.Time.Truncate(time.Hour)
				if len(out) == 0 || !out[len(out)-1].start.Equal(hour) {
					out = append(out, bucket{start: hour, min: x, max: x})
				}
				last := &out[len(out)-1]
				last.count++
				last.sum += x
				last.min, last.max = min(last.min, x), max(last.max, x)
			}
			each(b, len(out))
		}
		perPoint(b)
	})
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		b.Skip("no time zones on this machine")
	}
	measures := []window.Measure[reading]{
		{Name: "temp_c", Of: func(r reading) (float64, bool) { return r.TempC, true }},
		{Name: "humidity", Of: func(r reading) (float64, bool) { return r.Humidity, true }},
	}
	for _, c := range []struct {
		measures int
		zone     *time.Location
		gaps     window.Gaps
	}{{1, time.UTC, window.LeaveOut}, {1, berlin, window.LeaveOut}, {1, berlin, window.Linear}, {2, berlin, window.LeaveOut}} {
		b.Run(fmt.Sprintf("sdk/measures=%d/zone=%s/gaps=%v", c.measures, c.zone, c.gaps), func(b *testing.B) {
			b.ReportAllocs()
			hourly, err := window.New(window.Every(time.Hour).In(c.zone), measures[:c.measures], window.Options{Gaps: c.gaps})
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				got := 0
				for _, err := range hourly.Read(b.Context(), inMemory(seq), tsdb.Entity{}, tsdb.AllTime(), tsdb.OldestFirst) {
					if err != nil {
						b.Fatal(err)
					}
					got++
				}
				each(b, got)
			}
			perPoint(b)
		})
	}
}

// inMemory is a source of points that are in memory.
type inMemory iter.Seq2[tsdb.Point[reading], error]

func (p inMemory) Range(context.Context, tsdb.Entity, tsdb.Interval, ...tsdb.ReadOption) iter.Seq2[tsdb.Point[reading], error] {
	return iter.Seq2[tsdb.Point[reading], error](p)
}
