package bench

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/internal/engine"
	"github.com/tidemark-go/tidemark/tsdb"
)

// BenchmarkLatestAfterDelete measures reads of the newest point of a device with 200,000 points: without deletions, and
// ten seconds after the newest 100,000 were deleted. first-us is the time of the first read, p50-us the median.
func BenchmarkLatestAfterDelete(b *testing.B) {
	ctx := context.Background()
	for _, read := range []struct {
		name   string
		schema *tsdb.Schema[reading]
		do     func(repo *tsdb.Repository[reading]) error
	}{
		{"", points, func(repo *tsdb.Repository[reading]) error {
			_, err := repo.Latest(ctx, roof)
			return err
		}},
		{"heads/", heads, func(repo *tsdb.Repository[reading]) error {
			_, err := repo.Latest(ctx, roof)
			return err
		}},
		{"under/", points, func(repo *tsdb.Repository[reading]) error {
			for _, err := range repo.Under(tsdb.NewPrefix("berlin")).Latest(ctx) {
				if err != nil {
					return err
				}
			}
			return nil
		}},
	} {
		for _, bm := range []struct {
			name   string
			delete int
		}{{"none", 0}, {"100k", 100_000}} {
			b.Run(read.name+bm.name, func(b *testing.B) {
				store := plainOn(b, engine.Options{Dir: b.TempDir(), NoSync: true}, read.schema)
				repo := read.schema.For(store, acme)
				newest := fill(b, repo, 200_000)
				if bm.delete > 0 {
					from := newest.Add(-time.Duration(bm.delete-1) * time.Second)
					n, err := repo.DeleteRange(ctx, roof, tsdb.Between(from, newest.Add(time.Second)))
					if err != nil || n != bm.delete {
						b.Fatal(n, err)
					}
				}
				if !testing.Short() {
					time.Sleep(10 * time.Second) // the engine may compact
				}
				b.ReportAllocs()
				var took []time.Duration
				for b.Loop() {
					start := time.Now()
					if err := read.do(repo); err != nil {
						b.Fatal(err)
					}
					took = append(took, time.Since(start))
				}
				b.ReportMetric(float64(took[0].Nanoseconds())/1e3, "first-us")
				slices.Sort(took)
				b.ReportMetric(float64(took[len(took)/2].Nanoseconds())/1e3, "p50-us")
			})
		}
	}
}
