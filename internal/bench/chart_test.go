package bench

import (
	"context"
	"iter"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/embedded"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

// BenchmarkChart measures reads of 100,000 points of an entity, one a second, oldest first. raw only reads them; m4 and
// lttb reduce them to the line of a chart with 1,000 columns.
func BenchmarkChart(b *testing.B) {
	const n, width = 100_000, 1_000
	ctx := context.Background()
	store, err := embedded.New(ctx, embedded.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer store.Close()
	if err := store.Ensure(ctx, readings); err != nil {
		b.Fatal(err)
	}
	repo := readings.For(store, acme)
	from := time.Now().Add(-n * time.Second).Truncate(time.Second)
	batch := make([]tsdb.Point[reading], 0, 10_000)
	for i := range n {
		batch = append(batch, tsdb.Point[reading]{Entity: roof, Time: from.Add(time.Duration(i) * time.Second), Value: reading{TempC: float64(i * i % 1013), Humidity: 40}})
		if len(batch) == cap(batch) {
			if _, err := repo.PutMany(ctx, batch); err != nil {
				b.Fatal(err)
			}
			batch = batch[:0]
		}
	}
	in := tsdb.Between(from, from.Add(n*time.Second))
	value := window.Measure[reading]{Name: "temp_c", Of: func(r reading) (float64, bool) { return r.TempC, true }}
	line := func(opts window.LineOptions) iter.Seq2[window.LineSample, error] {
		line, err := window.ReadLine(ctx, repo, roof, in, value, opts)
		if err != nil {
			b.Fatal(err)
		}
		return line.Samples
	}
	opts := window.LineOptions{Columns: width, MaxGap: time.Minute}
	points := func() iter.Seq2[tsdb.Point[reading], error] { return repo.Range(ctx, roof, in, tsdb.OldestFirst) }
	b.Run("raw", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			count := 0
			for _, err := range points() {
				if err != nil {
					b.Fatal(err)
				}
				count++
			}
			if count != n {
				b.Fatal(count)
			}
		}
	})
	for _, m := range []struct {
		name string
		line func() iter.Seq2[window.LineSample, error]
		most int
	}{
		{"m4", func() iter.Seq2[window.LineSample, error] { return line(opts) }, 4 * width},
		{"lttb", func() iter.Seq2[window.LineSample, error] { opts := opts; opts.LTTB = true; return line(opts) }, width},
	} {
		b.Run(m.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				count := 0
				for _, err := range m.line() {
					if err != nil {
						b.Fatal(err)
					}
					count++
				}
				if count < width || count > m.most {
					b.Fatal(count)
				}
			}
		})
	}
}
