package bench

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/internal/engine"
	"github.com/tidemark-go/tidemark/internal/local"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// latestOfEach reads the newest point of each device in a request of its own, all at once.
func latestOfEach(b *testing.B, repo *tsdb.Repository[reading], devices []tsdb.Entity) {
	var wg sync.WaitGroup
	for _, d := range devices {
		wg.Go(func() {
			if _, err := repo.Latest(context.Background(), d); err != nil {
				b.Error(err)
			}
		})
	}
	wg.Wait()
}

// BenchmarkLatest100 measures reads of the newest point of each of 100 devices, without network delay: with one request
// for each device (each), with PrefixReader.Latest over histories of 100 and of 10,000 points, by a store that has met
// none of them (first) and by one that has (scan), with Entities (entities), with one request for a short range of each
// device (window), and from heads (head).
func BenchmarkLatest100(b *testing.B) {
	server, err := local.Open(engine.Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = server.Close() })
	var fresh func() *tsdb.Store
	store := open(b, server, func(c *bigtable.Client, a *bigtable.AdminClient) *tsdb.Store {
		fresh = func() *tsdb.Store {
			s, err := tsdb.New(c, table, tsdb.Options{Admin: a})
			if err != nil {
				b.Fatal(err)
			}
			return s
		}
		return fresh()
	})
	if err := store.Ensure(context.Background(), points, heads); err != nil {
		b.Fatal(err)
	}
	repo := points.For(store, acme)
	const n = 100
	devices := fillFleet(b, repo, "berlin", n, 100)
	fillFleet(b, heads.For(store, acme), "berlin", n, 100)
	ctx := context.Background()
	many := func(b *testing.B, repo *tsdb.Repository[reading]) {
		b.ReportAllocs()
		for b.Loop() {
			if answers, err := repo.LatestMany(ctx, devices, 1); err != nil || answers[n-1].Points[0].Value.TempC != 21.5 {
				b.Fatal(err)
			}
		}
	}
	under := func(b *testing.B, repo *tsdb.Repository[reading], site string) {
		found := 0
		for _, err := range repo.Under(tsdb.NewPrefix(site)).Latest(ctx) {
			if err != nil {
				b.Fatal(err)
			}
			found++
		}
		if found != n {
			b.Fatal(found)
		}
	}
	scan := func(b *testing.B, site string) {
		b.ReportAllocs()
		for b.Loop() {
			under(b, repo, site)
		}
	}
	b.Run("each", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			latestOfEach(b, repo, devices)
		}
	})
	b.Run("first", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			b.StopTimer()
			repo := points.For(fresh(), acme)
			if _, err := repo.Latest(ctx, devices[0]); err != nil { // reads what the store keeps of tenants
				b.Fatal(err)
			}
			b.StartTimer()
			under(b, repo, "berlin")
		}
	})
	b.Run("scan", func(b *testing.B) { scan(b, "berlin") })
	b.Run("entities", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			found := 0
			for _, err := range repo.Under(tsdb.NewPrefix("berlin")).Entities(ctx, tsdb.AllTime()) {
				if err != nil {
					b.Fatal(err)
				}
				found++
			}
			if found != n {
				b.Fatal(found)
			}
		}
	})
	b.Run("window", func(b *testing.B) { many(b, repo) })
	b.Run("head", func(b *testing.B) { many(b, heads.For(store, acme)) })
	b.Run("scan/history=10000", func(b *testing.B) {
		fillFleet(b, repo, "bonn", n, 10_000)
		scan(b, "bonn")
	})
}

// BenchmarkLatestManySilent measures reads of the newest point of each of 100 devices. A percentage of them has been
// silent for 72 hours; the others write each minute. It runs without delay and with 5 ms on each call. The clock
// advances ten seconds a call, so devices write between calls.
func BenchmarkLatestManySilent(b *testing.B) {
	const n = 100
	for _, silent := range []int{0, 5, 30} {
		for _, delay := range []time.Duration{0, 5 * time.Millisecond} {
			for _, how := range []string{"each", "window"} {
				b.Run(fmt.Sprintf("%d/delay=%v/%s", silent, delay, how), func(b *testing.B) {
					now := time.Now()
					store, conn := tsdbtest.Open(b, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Clock: func() time.Time { return now }}}, points)
					repo := points.For(store, acme)
					devices := make([]tsdb.Entity, n)
					var first []tsdb.Point[reading]
					for i := range devices {
						devices[i] = tsdb.NewEntity("berlin", fmt.Sprintf("d-%d", i))
						newest := now.Add(-time.Duration(i) * time.Minute / n)
						if i%100 < silent {
							newest = now.Add(-72 * time.Hour)
						}
						for k := range 20 {
							first = append(first, tsdb.Point[reading]{Entity: devices[i], Time: newest.Add(-time.Duration(k) * time.Minute), Value: reading{21.5, 40}})
						}
					}
					if _, err := repo.PutMany(context.Background(), first); err != nil {
						b.Fatal(err)
					}
					conn.Inject(tsdbtest.Delay(delay).On(tsdbtest.ReadRows))
					b.ReportAllocs()
					turn := 0
					for b.Loop() {
						b.StopTimer()
						now = now.Add(10 * time.Second)
						var news []tsdb.Point[reading]
						for i := turn % 6; i < n; i += 6 { // a sixth of the devices every ten seconds
							if i%100 >= silent {
								news = append(news, tsdb.Point[reading]{Entity: devices[i], Time: now, Value: reading{21.5, 40}})
							}
						}
						turn++
						if _, err := repo.PutMany(context.Background(), news); err != nil {
							b.Fatal(err)
						}
						b.StartTimer()
						if how == "each" {
							latestOfEach(b, repo, devices)
						} else if _, err := repo.LatestMany(context.Background(), devices, 1); err != nil {
							b.Fatal(err)
						}
					}
					b.ReportMetric(float64(conn.Counts().Calls[tsdbtest.ReadRows])/float64(b.N), "requests/op")
				})
			}
		}
	}
}
