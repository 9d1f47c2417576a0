package bench

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// BenchmarkLatestService measures a service of latest values over a network like that to Cloud Bigtable: a request
// takes 5 ms, 1% take over 15 ms, and 0.1% take 500 ms. 200 callers ask for the newest point of one device, of 100 and
// of 500, and for a page of 50 of the fleet; between two calls each waits for a time of its own, so that the processor
// is not the limit. Case raw is the official client, with a request for each device, all at once. Cases hedged use
// Hedge, and heads a dataset of heads.
//
// A call is one operation, so run it for a number of calls: -benchtime 2000x. slow-% is the share of calls that took
// longer than 100 ms.
func BenchmarkLatestService(b *testing.B) {
	const devices, callers = 500, 200
	store, conn := tsdbtest.Open(b, tsdbtest.Options{}, readings, heads)
	client, _ := tsdbtest.Clients(b, conn)
	tbl := client.Open(tsdbtest.Table)
	repo, headed := readings.For(store, acme), heads.For(store, acme)
	fleet := fillFleet(b, repo, "berlin", devices, 10)
	fillFleet(b, headed, "berlin", devices, 10)
	hedge := tsdb.Hedge{After: 12 * time.Millisecond, MaxRatio: 0.05}
	type call func(ctx context.Context, from int) error
	raw := func(n int) call {
		return func(ctx context.Context, from int) error { return rawLatest(ctx, tbl, fleet[from:][:n]) }
	}
	one := func(repo *tsdb.Repository[reading], opts ...tsdb.ReadOption) call {
		return func(ctx context.Context, from int) error {
			_, err := repo.Latest(ctx, fleet[from], opts...)
			return err
		}
	}
	many := func(repo *tsdb.Repository[reading], n int, opts ...tsdb.ReadOption) call {
		return func(ctx context.Context, from int) error {
			_, err := repo.LatestMany(ctx, fleet[from:][:n], 1, opts...)
			return err
		}
	}
	page := func(repo *tsdb.Repository[reading], opts ...tsdb.ReadOption) call {
		return func(ctx context.Context, _ int) error {
			p, err := repo.Under(tsdb.AllEntities()).PageLatest(ctx, 50, "", opts...)
			if err == nil && len(p.Points) != 50 {
				err = errors.New("a page is not full")
			}
			return err
		}
	}
	for _, bm := range []struct {
		name  string
		think time.Duration
		last  int // the last device that a call can begin with
		calls map[string]call
	}{
		{"one", 200 * time.Millisecond, devices - 1, map[string]call{"raw": raw(1), "sdk": one(repo), "hedged": one(repo, hedge), "heads": one(headed), "heads-hedged": one(headed, hedge)}},
		{"100", 4 * time.Second, devices - 100, map[string]call{"raw": raw(100), "sdk": many(repo, 100), "hedged": many(repo, 100, hedge), "heads": many(headed, 100), "heads-hedged": many(headed, 100, hedge)}},
		{"500", 20 * time.Second, 0, map[string]call{"raw": raw(500), "sdk": many(repo, 500), "hedged": many(repo, 500, hedge), "heads": many(headed, 500), "heads-hedged": many(headed, 500, hedge)}},
		{"page", 2 * time.Second, devices - 50, map[string]call{"raw": raw(50), "sdk": page(repo), "hedged": page(repo, hedge), "heads": page(headed), "heads-hedged": page(headed, hedge)}},
	} {
		for _, how := range []string{"raw", "sdk", "hedged", "heads", "heads-hedged"} {
			b.Run(bm.name+"/"+how, func(b *testing.B) {
				conn.Clear()
				for _, from := range []int{0, bm.last / 2, bm.last} { // the store learns what it keeps
					if err := bm.calls[how](b.Context(), from); err != nil {
						b.Fatal(err)
					}
				}
				conn.Inject(tsdbtest.DelayBy(latency{P50: 5 * time.Millisecond, P99: 15 * time.Millisecond, SlowShare: 0.001, Slow: 500 * time.Millisecond, Seed: 1}.draw()))
				conn.Reset()
				took := make([]time.Duration, b.N)
				var next atomic.Int64
				var all sync.WaitGroup
				think := bm.think
				if testing.Short() {
					think = 0
				}
				for range callers {
					all.Go(func() {
						time.Sleep(time.Duration(rand.Float64() * float64(think)))
						for i := next.Add(1) - 1; i < int64(b.N); i = next.Add(1) - 1 {
							began := time.Now()
							if err := bm.calls[how](b.Context(), rand.IntN(bm.last+1)); err != nil {
								b.Error(err)
							}
							took[i] = time.Since(began)
							time.Sleep(time.Duration((0.5 + rand.Float64()) * float64(think)))
						}
					})
				}
				all.Wait()
				slices.Sort(took)
				requests := float64(conn.Counts().Calls[tsdbtest.ReadRows]) / float64(b.N)
				slow, _ := slices.BinarySearch(took, 100*time.Millisecond)
				b.ReportMetric(100*float64(len(took)-slow)/float64(len(took)), "slow-%")
				b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
				b.ReportMetric(float64(took[(len(took)-1)*99/100].Microseconds())/1000, "p99-ms")
				b.ReportMetric(requests, "requests/op")
			})
		}
	}
}

// rawLatest reads the newest point of each device with the official client, in a request of its own, all at once.
func rawLatest(ctx context.Context, tbl *bigtable.Table, devices []tsdb.Entity) error {
	errs := make([]error, len(devices))
	var all sync.WaitGroup
	for i, d := range devices {
		all.Go(func() {
			prefix := "acme#readings#" + strings.Join(d.Parts(), "#") + "#"
			ctx, cancel := context.WithTimeout(ctx, timeout)
			defer cancel()
			errs[i] = errors.New("nothing found")
			var bad error
			err := tbl.ReadRows(ctx, bigtable.NewRange(prefix, prefix+reverse(cutoff())), func(row bigtable.Row) bool {
				_, bad = decode(row)
				errs[i] = nil
				return true
			}, bigtable.RowFilter(filter()), bigtable.LimitRows(1))
			errs[i] = errors.Join(errs[i], err, bad)
		})
	}
	all.Wait()
	return errors.Join(errs...)
}
