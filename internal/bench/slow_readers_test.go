package bench

import (
	"context"
	"flag"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/internal/engine"
	"github.com/tidemark-go/tidemark/tsdb"
)

var texts = tsdb.MustDefine("texts", tsdb.Key("site", "device"), codec.String(), tsdb.SchemaOptions{
	Retention: gc.Class{Name: "d7", Policy: gc.MaxAge(7 * 24 * time.Hour)},
})

var slowMiB = flag.Int("slow.mib", 500, "how many MiB BenchmarkSlowReaders writes; 20 with -short")

// BenchmarkSlowReaders writes 500 MiB of points, alone and while 200 readers, which begin one after the other, take one
// row a second of a device that has far more of them than a response holds. It reports the rate, and by how much the
// process grew at most: run each case in a process of its own. A reader's row that is missing or out of order fails it.
func BenchmarkSlowReaders(b *testing.B) {
	for _, readers := range []int{0, 200} {
		b.Run(fmt.Sprintf("readers=%d", readers), func(b *testing.B) {
			for b.Loop() {
				slowReaders(b, readers)
			}
		})
	}
}

func slowReaders(b *testing.B, readers int) {
	const (
		devices = 1000
		history = 100_000
	)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	store := plainOn(b, engine.Options{Dir: b.TempDir()}, texts)
	repo := texts.For(store, acme)
	w, err := store.NewWriter(tsdb.WriterOptions{})
	if err != nil {
		b.Fatal(err)
	}
	in := repo.Via(w)
	base := time.Now().Truncate(time.Second).Add(-history * time.Second)
	text := strings.Repeat("0123456789abcdef", 16)
	old := tsdb.NewEntity("berlin", "old")
	write := func(from, to int, entity func(i int) (tsdb.Entity, int)) {
		for i := from; i < to; i++ {
			e, second := entity(i)
			if err := in.Enqueue(ctx, e, base.Add(time.Duration(second)*time.Second), text); err != nil {
				b.Fatal(err)
			}
		}
		if err := w.Flush(ctx); err != nil {
			b.Fatal(err)
		}
	}
	write(0, sized(history), func(i int) (tsdb.Entity, int) { return old, i })
	many := func(i int) (tsdb.Entity, int) {
		return tsdb.NewEntity("berlin", fmt.Sprintf("device-%04d", i%devices)), i / devices
	}
	start, _ := memory("VmRSS:")

	var peak, rows atomic.Int64
	stop := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() {
		for {
			if now, ok := memory("VmRSS:"); ok {
				peak.Store(max(peak.Load(), int64(now)))
			}
			select {
			case <-stop:
				return
			case <-time.After(10 * time.Millisecond):
			}
		}
	})
	began := time.Now()
	mib := *slowMiB
	if testing.Short() {
		mib = 20
	}
	n := mib << 20 / (len(text) + 60)
	for i := range readers {
		running.Go(func() {
			rows.Add(readSlowly(b, repo, old, stop))
		})
		write(n*i/readers, n*(i+1)/readers, many)
	}
	if readers == 0 {
		write(0, n, many)
	}
	took := time.Since(began)
	close(stop)
	running.Wait()
	if err := w.Close(ctx); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(n)/took.Seconds(), "points/s")
	b.ReportMetric(float64(peak.Load())-start, "grown-MiB")
	b.ReportMetric(float64(rows.Load()), "rows-read")
}

// readSlowly takes a row a second of the points of a device, until stop is closed, and checks that none is missing.
func readSlowly(b *testing.B, repo *tsdb.Repository[string], e tsdb.Entity, stop <-chan struct{}) (rows int64) {
	var last time.Time
	for p, err := range repo.Range(context.Background(), e, tsdb.AllTime()) {
		if err != nil {
			b.Error(err)
			return rows
		}
		if rows > 0 && !p.Time.Equal(last.Add(-time.Second)) {
			b.Errorf("%s: %v follows %v, want the point of a second before", e, p.Time, last)
			return rows
		}
		last = p.Time
		rows++
		select {
		case <-stop:
			return rows
		case <-time.After(time.Second):
		}
	}
	return rows
}
