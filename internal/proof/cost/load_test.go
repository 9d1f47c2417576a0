package cost

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// steady is what a store does per second over a while: requests, background reads and their bytes.
type steady struct{ requests, upkeep, upSent, upReceived float64 } // upSent and upReceived are bytes of one background read

// inBubble runs a store in a synctest bubble for a while. It puts `each` points of many tenants each millisecond
// through a writer. If each is 0, it puts and reads one point each second. In the bubble only timers advance time, so
// the result does not depend on the machine.
func inBubble(t *testing.T, opts tsdb.SchemaOptions, writer tsdb.WriterOptions, each int, while time.Duration) (out steady) {
	t.Helper()
	t.Setenv("TIDEMARK_TEST_TCP", "") // bubbles work in process only
	synctest.Test(t, func(t *testing.T) {
		s := schema(opts)
		w := newWorld(t, s, tsdbtest.Options{})
		put, err := w.store.NewWriter(writer)
		w.ok(err)
		var in []*tsdb.Sink[reading]
		for _, id := range several(40) {
			in = append(in, s.For(w.store, id).Via(put))
		}
		w.ok(w.repo.Put(w.ctx, device(0), noon, value))
		time.Sleep(10 * time.Second) // the fields of the type are listed
		begin := time.Now()
		n := 0
		f := w.count(func() {
			for time.Since(begin) < while {
				for range each {
					n++
					w.ok(in[n%len(in)].Enqueue(w.ctx, device(n%50_000), noon.Add(-time.Duration(n)*time.Microsecond), value))
				}
				if each == 0 {
					_, err := w.repo.LatestN(w.ctx, device(0), 1)
					w.ok(err)
					w.ok(w.repo.Put(w.ctx, device(0), noon, value))
					time.Sleep(time.Second)
				} else {
					time.Sleep(time.Millisecond)
				}
			}
			w.ok(put.Flush(w.ctx))
		})
		w.ok(put.Close(w.ctx))
		w.ok(w.store.Close())
		out = steady{requests: float64(f.calls["bulk"]) / while.Seconds(), upkeep: float64(f.upkeep) / while.Seconds()}
		if f.upkeep > 0 {
			out.upSent, out.upReceived = float64(f.upSent)/float64(f.upkeep), float64(f.upReceived)/float64(f.upkeep)
		}
	})
	return out
}

// The store's background reads of erasure marks: how many a second, and the bytes of each request.
const (
	marks       = 1.0 / 5
	upkeepBytes = 96
)

// choosing is a schema whose tenants may choose another class.
var choosing = tsdb.SchemaOptions{Classes: []gc.Class{{Name: "d30", Policy: gc.MaxAge(30 * 24 * time.Hour)}}}

// mostRequests returns how many requests a second a writer makes at most: one for each linger. If batches fill up
// sooner, two for each full batch, because the rest of a queue is sent at once.
func mostRequests(points, batch float64, linger time.Duration) float64 {
	return max(1/linger.Seconds(), 2*points/batch)
}

// TestWriterRequests checks the document's figures for a stream of points through a writer.
func TestWriterRequests(t *testing.T) {
	const while = time.Second / 2
	for _, c := range []struct {
		each   int
		linger time.Duration
	}{{30, lingers}, {6, 5 * time.Millisecond}, {6, lingers}, {1, lingers}} {
		got := inBubble(t, tsdb.SchemaOptions{}, tsdb.WriterOptions{Linger: c.linger}, c.each, while)
		if most := mostRequests(float64(1000*c.each), 1000, c.linger); got.requests > most+1/while.Seconds() {
			t.Errorf("%d points a second with a linger of %v: got %v requests a second, want at most %v", 1000*c.each, c.linger, got.requests, most)
		}
	}
}

// TestUpkeep checks the document's figures for the store's background reads.
func TestUpkeep(t *testing.T) {
	const profiles = 1.0 / 60
	const while = 10 * time.Minute
	got := inBubble(t, tsdb.SchemaOptions{}, tsdb.WriterOptions{}, 0, while)
	if got.upkeep > marks || got.upkeep < marks/2 || got.upSent != upkeepBytes || got.upReceived != 0 {
		t.Errorf("background reads of erasure marks: got %+v, want %v a second and %v bytes each", got, marks, upkeepBytes)
	}
	got = inBubble(t, choosing, tsdb.WriterOptions{}, 0, while)
	if got.upkeep > marks+profiles+1/while.Seconds() || got.upkeep < marks/2 {
		t.Errorf("background reads with classes to choose: got %v a second, want %v", got.upkeep, marks+profiles)
	}
}
