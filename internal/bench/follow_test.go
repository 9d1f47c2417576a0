package bench

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// BenchmarkFollow puts points while some followers of the same device wait for them. It reports the time from the end
// of Put to the event in one of them, p50 and p99, and the time that the others add to a Put.
func BenchmarkFollow(b *testing.B) {
	for _, others := range []int{0, 9, 99} {
		b.Run(fmt.Sprintf("followers=%d", others+1), func(b *testing.B) {
			store, _ := tsdbtest.Open(b, tsdbtest.Options{}, readings)
			repo := readings.For(store, acme)
			ctx, device := context.Background(), tsdb.NewEntity("berlin", "d1")
			open := func() *tsdb.Follower[reading] {
				f, err := repo.Follow(ctx, device, tsdb.FollowOptions{Interval: time.Hour})
				if err != nil {
					b.Fatal(err)
				}
				b.Cleanup(func() { _ = f.Close() })
				return f
			}
			for range others { // all but one are slow: they only fill their queues
				open()
			}
			arrived := make(chan time.Time)
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			f := open()
			go func() {
				for _, err := range f.Points(ctx) {
					if err != nil {
						close(arrived)
						return
					}
					arrived <- time.Now()
				}
			}()
			at, puts := time.Now(), time.Duration(0)
			var delays []time.Duration
			b.ReportAllocs()
			for b.Loop() {
				at = at.Add(time.Microsecond)
				began := time.Now()
				if err := repo.Put(ctx, device, at, reading{21.5, 40}); err != nil {
					b.Fatal(err)
				}
				stored := time.Now()
				puts += stored.Sub(began)
				delays = append(delays, (<-arrived).Sub(stored))
			}
			slices.Sort(delays)
			b.ReportMetric(float64(delays[len(delays)/2].Nanoseconds())/1e3, "p50-us")
			b.ReportMetric(float64(delays[len(delays)*99/100].Nanoseconds())/1e3, "p99-us")
			b.ReportMetric(float64(puts.Nanoseconds())/float64(len(delays)), "put-ns")
			cancel()
			for range arrived { //nolint:revive // waits for the loop
			}
		})
	}
}
