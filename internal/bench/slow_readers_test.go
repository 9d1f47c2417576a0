package bench

import (
	"context"
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

// BenchmarkSlowReaders writes 100 MB of points, alone and while 200 readers, which begin one after the other, take one row a second of a
// range that has many more. It reports the rate, and by how much the process grew at most: run each case in a process of its own. A
// reader's row that is missing or out of order fails it.
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
		before  = 100_000
		size    = 100 << 20
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
	base := time.Now().Truncate(time.Second).Add(-time.Hour)
	text := strings.Repeat("0123456789abcdef", 16)
	write := func(from, to int) {
		for i := from; i < to; i++ {
			if err := in.Enqueue(ctx, tsdb.NewEntity("berlin", fmt.Sprintf("device-%04d", i%devices)), base.Add(time.Duration(i/devices)*time.Second), text); err != nil {
				b.Fatal(err)
			}
		}
		if err := w.Flush(ctx); err != nil {
			b.Fatal(err)
		}
	}
	write(0, before)
	start, _ := memory("VmRSS:")

	var peak, rows atomic.Int64
	stop := make(chan struct{})
	var running sync.WaitGroup
	for i := range readers {
		running.Go(func() {
			rows.Add(readSlowly(b, repo, tsdb.NewEntity("berlin", fmt.Sprintf("device-%04d", i)), base, stop))
		})
	}
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
	n := size / (len(text) + 60)
	for i := range readers {
		running.Go(func() {
			rows.Add(readSlowly(b, repo, tsdb.NewEntity("berlin", fmt.Sprintf("device-%04d", i)), base, stop))
		})
		write(before+n*i/readers, before+n*(i+1)/readers)
	}
	if readers == 0 {
		write(before, before+n)
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
func readSlowly(b *testing.B, repo *tsdb.Repository[string], e tsdb.Entity, base time.Time, stop <-chan struct{}) (rows int64) {
	var last time.Time
	for p, err := range repo.Range(context.Background(), e, tsdb.Between(base, base.Add(100*time.Second))) {
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
