package bench

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/internal/engine"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// fillFleet writes `each` points for each of the site's devices, a second apart.
func fillFleet(b *testing.B, repo *tsdb.Repository[reading], site string, devices, each int) []tsdb.Entity {
	b.Helper()
	newest := time.Now().Truncate(time.Second)
	entities := make([]tsdb.Entity, devices)
	const batch = 10_000
	points := make([]tsdb.Point[reading], 0, batch)
	for i := range entities {
		entities[i] = tsdb.NewEntity(site, fmt.Sprintf("d-%d", i))
		for k := range each {
			points = append(points, tsdb.Point[reading]{Entity: entities[i], Time: newest.Add(-time.Duration(k) * time.Second), Value: reading{21.5, 40}})
			if len(points) == batch || i == devices-1 && k == each-1 {
				if _, err := repo.PutMany(context.Background(), points); err != nil {
					b.Fatal(err)
				}
				points = points[:0]
			}
		}
	}
	return entities
}

// BenchmarkLatestMany measures reads of the newest points of 500 devices with 5 ms on each call: with a loop over the
// official client, as in BenchmarkLatest/raw, and with LatestMany.
func BenchmarkLatestMany(b *testing.B) {
	store, conn := tsdbtest.Open(b, tsdbtest.Options{}, readings)
	client, _ := tsdbtest.Clients(b, conn)
	tbl := client.Open(tsdbtest.Table)
	repo := readings.For(store, acme)
	devices := fillFleet(b, repo, "berlin", 500, 10)
	conn.Inject(tsdbtest.Delay(5 * time.Millisecond))
	ctx := context.Background()
	b.Run("sequential", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			for _, d := range devices {
				prefix := "acme#readings#" + strings.Join(d.Parts(), "#") + "#"
				ctx, cancel := context.WithTimeout(ctx, timeout)
				found := false
				var bad error
				err := tbl.ReadRows(ctx, bigtable.NewRange(prefix, prefix+reverse(cutoff())), func(row bigtable.Row) bool {
					_, bad = decode(row)
					found = true
					return true
				}, bigtable.RowFilter(filter()), bigtable.LimitRows(1))
				cancel()
				if err != nil || bad != nil || !found {
					b.Fatal(err, bad, found)
				}
			}
		}
	})
	b.Run("sdk", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if answers, err := repo.LatestMany(ctx, devices, 1); err != nil || len(answers) != len(devices) {
				b.Fatal(err)
			}
		}
	})
	b.Run("head", latestOfHeads)
}

// BenchmarkLatestManyTail measures reads of two points of each of 100 devices, with one request for each device,
// through a network in which some requests are slow. p99-ms is the 99th percentile over the calls of one run, so run it
// for a number of calls: -benchtime 500x. extra-% are the requests beyond one for each device.
func BenchmarkLatestManyTail(b *testing.B) {
	store, conn := tsdbtest.Open(b, tsdbtest.Options{}, readings)
	repo := readings.For(store, acme)
	devices := fillFleet(b, repo, "berlin", 100, 10)
	tail := latency{P50: 3 * time.Millisecond, P99: 15 * time.Millisecond, SlowShare: 0.001, Slow: 500 * time.Millisecond, Seed: 1}
	for _, bm := range []struct {
		name string
		opts []tsdb.ReadOption
	}{{"plain", nil}, {"hedged", []tsdb.ReadOption{tsdb.Hedge{After: 12 * time.Millisecond, MaxRatio: 0.05}}}} {
		b.Run(bm.name, func(b *testing.B) {
			b.ReportAllocs()
			conn.Clear()
			conn.Inject(tsdbtest.DelayBy(tail.draw()))
			conn.Reset()
			var took []time.Duration
			for b.Loop() {
				begin := time.Now()
				if _, err := repo.LatestMany(context.Background(), devices, 2, bm.opts...); err != nil {
					b.Fatal(err)
				}
				took = append(took, time.Since(begin))
			}
			slices.Sort(took)
			asked := len(took) * len(devices)
			b.ReportMetric(float64(took[(len(took)-1)*99/100])/1e6, "p99-ms")
			b.ReportMetric(100*float64(conn.Counts().Calls[tsdbtest.ReadRows]-asked)/float64(asked), "extra-%")
		})
	}
}

// BenchmarkLatestUnder measures reads of the newest points of 25 devices below a prefix, with histories of 10 and of
// 100,000 points each.
func BenchmarkLatestUnder(b *testing.B) {
	for _, bm := range []struct {
		name   string
		points int
	}{{"short", 10}, {"long", 100_000}} {
		b.Run(bm.name, func(b *testing.B) {
			repo, _ := setup(b, engine.Options{})
			devices := fillFleet(b, repo, "berlin", 25, sized(bm.points))
			b.ReportAllocs()
			for b.Loop() {
				n := 0
				for _, err := range repo.Under(tsdb.NewPrefix("berlin")).Latest(context.Background()) {
					if err != nil {
						b.Fatal(err)
					}
					n++
				}
				if n != len(devices) {
					b.Fatal(n)
				}
			}
		})
	}
}
