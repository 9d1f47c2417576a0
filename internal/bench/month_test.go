package bench

import (
	"context"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/embedded"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

// truck has ten fields, of which a window needs one.
type truck struct {
	Lat    float64 `json:"lat"`
	Lon    float64 `json:"lon"`
	Speed  float64 `json:"speed"`
	Fuel   float64 `json:"fuel"`
	Load   float64 `json:"load"`
	Temp   float64 `json:"temp"`
	Grade  float64 `json:"grade"`
	Miles  int64   `json:"miles"`
	Driver string  `json:"driver"`
	Moving bool    `json:"moving"`
}

// BenchmarkMonth measures windows by day over a month of points, one a minute, that the embedded engine holds: of two
// fields and of ten, with one measure.
func BenchmarkMonth(b *testing.B) {
	b.Run("fields=2", func(b *testing.B) {
		month(b, "two", func(i int) reading { return reading{TempC: float64(i*i%1013) / 8, Humidity: 40.5} },
			func(r reading) (float64, bool) { return r.TempC, true })
	})
	b.Run("fields=10", func(b *testing.B) {
		month(b, "ten", func(i int) truck {
			return truck{
				Lat: 51.507351 + float64(i)/1e5, Lon: -0.127758 + float64(i)/1e5, Speed: float64(i*i%1013) / 8, Fuel: 0.7, Load: 12000,
				Temp: 21.5, Grade: -0.25, Miles: int64(100_000 + i), Driver: "driver-17", Moving: i%7 > 0,
			}
		}, func(t truck) (float64, bool) { return t.Speed, true })
	})
}

func month[T any](b *testing.B, name string, value func(i int) T, of func(T) (float64, bool)) {
	const days, perDay = 30, 24 * 60
	ctx := context.Background()
	store, err := embedded.New(ctx, embedded.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer store.Close()
	schema := tsdb.MustDefine(name, tsdb.Key("site", "device"), codec.JSON[T](), tsdb.SchemaOptions{})
	if err := store.Ensure(ctx, schema); err != nil {
		b.Fatal(err)
	}
	repo := schema.For(store, acme)
	from := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	batch := make([]tsdb.Point[T], 0, perDay)
	for i := range days * perDay {
		batch = append(batch, tsdb.Point[T]{Entity: roof, Time: from.Add(time.Duration(i) * time.Minute), Value: value(i)})
		if len(batch) == cap(batch) {
			if _, err := repo.PutMany(ctx, batch); err != nil {
				b.Fatal(err)
			}
			batch = batch[:0]
		}
	}
	daily, err := window.New(window.Days(1), []window.Measure[T]{{Name: "x", Of: of}}, window.Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		got := 0
		for _, err := range daily.Read(ctx, repo, roof, tsdb.Between(from, from.AddDate(0, 0, days)), tsdb.OldestFirst) {
			if err != nil {
				b.Fatal(err)
			}
			got++
		}
		if got != days {
			b.Fatalf("got %d days, want %d", got, days)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/(days*perDay), "ns/point")
}
