package bench

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/internal/engine"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
)

// BenchmarkFlood measures how long a point of a quiet tenant takes until it is stored and, with a journal, until the
// journal has it: alone, and while 16 goroutines of another tenant enqueue as fast as they can. The quiet tenant sends
// a point every 10 ms for ten seconds.
func BenchmarkFlood(b *testing.B) {
	for _, journal := range []bool{false, true} {
		for _, senders := range []int{0, 16} {
			b.Run(fmt.Sprintf("journal=%t/senders=%d", journal, senders), func(b *testing.B) {
				for b.Loop() {
					flood(b, journal, senders)
				}
			})
		}
	}
}

func flood(b *testing.B, journal bool, senders int) {
	points := 1000
	if testing.Short() {
		points = 20
	}
	store := plainOn(b, engine.Options{}, readings)
	o := tsdb.WriterOptions{}
	if journal {
		o.Journal.Dir = b.TempDir()
	}
	w, err := store.NewWriter(o)
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(b.Context())
	var flooding sync.WaitGroup
	noisy := readings.For(store, acme).Via(w)
	for i := range senders {
		flooding.Go(func() {
			e, base := tsdb.NewEntity("berlin", fmt.Sprintf("device-%d", i)), time.Now()
			for n := 0; ctx.Err() == nil; n++ {
				if err := noisy.EnqueueFunc(ctx, e, base.Add(time.Duration(n)*time.Microsecond), reading{21.5, 40}, func(tsdb.Outcome) {}); err != nil {
					if ctx.Err() == nil {
						b.Error(err)
					}
					return
				}
			}
		})
	}
	quiet := readings.For(store, tenant.MustParse("quiet")).Via(w)
	taken, stored := make([]time.Duration, points), make([]time.Duration, points)
	var waiting sync.WaitGroup
	tick := time.NewTicker(10 * time.Millisecond)
	began := time.Now()
	for i := range points {
		<-tick.C
		waiting.Add(1)
		go func() { // the clock of a sender that waits for nothing
			at := time.Now()
			err := quiet.EnqueueFunc(ctx, roof, at, reading{21.5, 40}, func(out tsdb.Outcome) {
				defer waiting.Done()
				if stored[i] = time.Since(at); out.Err != nil {
					b.Error(out.Err)
				}
			})
			if taken[i] = time.Since(at); err != nil {
				b.Error(err)
			}
		}()
	}
	waiting.Wait()
	b.ReportMetric(float64(w.Stats().Stored)/time.Since(began).Seconds(), "points/s")
	cancel()
	flooding.Wait()
	if err := w.Close(context.Background()); err != nil {
		b.Fatal(err)
	}
	for name, all := range map[string][]time.Duration{"taken": taken, "stored": stored} {
		slices.Sort(all)
		b.ReportMetric(float64(all[len(all)/2].Microseconds())/1000, name+"-p50-ms")
		b.ReportMetric(float64(all[len(all)*99/100].Microseconds())/1000, name+"-p99-ms")
	}
}
