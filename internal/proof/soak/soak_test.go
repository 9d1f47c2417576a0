package soak

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/internal/proof/testkit"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// TestSoak runs everything at once for the time that -soak says, and checks all guarantees.
func TestSoak(t *testing.T) {
	seed := *soakSeed
	if seed == 0 {
		seed = rand.Uint64()>>1 + 1
	}
	p := newPlan(*soakFor, seed, testkit.Raced)
	checking := 5*time.Minute + p.duration/3 // at most
	if end, ok := t.Deadline(); ok && p.duration > time.Minute && time.Until(end) < p.duration+checking {
		t.Fatalf("-soak %v needs more time than go test allows: set -timeout %v", p.duration, (p.duration + checking + 5*time.Minute).Round(time.Minute))
	}
	t.Log(p)
	w := openWorld(t, p)
	samples := w.run()
	w.conn.Clear()
	w.line()
	ended := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), checking)
	defer cancel()
	w.checkGrowth(samples)
	w.checkProgress()
	clean := w.another(tsdb.CacheOptions{}) // with the default timeouts: slow answers are not an error here
	w.check(ctx, clean)
	w.clock.forward(2 * time.Minute) // all buckets are closed, and all marks are due
	w.checkRollups(ctx, clean)
	t.Logf("rows in the table, by kind: %v", w.checkRows(ctx))
	w.checkCollected(ctx)
	t.Logf("checked in %v", time.Since(ended).Round(time.Millisecond))
}

// checkProgress fails a run in which nothing happened.
func (w *world) checkProgress() {
	s := &w.stats
	if s.acked.Load() == 0 || s.events.Load() == 0 || s.reads.Load() < 2*s.readErrors.Load() || s.faults.Load() == 0 || s.passes.Load() == 0 {
		w.fail("got no progress, so the run proves nothing")
	}
}

// another returns another store on the table, with the same faults.
func (w *world) another(cache tsdb.CacheOptions) *tsdb.Store {
	client, _ := tsdbtest.Clients(w.t, w.conn)
	store, err := tsdb.New(client, tsdbtest.Table, tsdb.Options{StoreOptions: tsdb.StoreOptions{Clock: w.clock.now, Cache: cache}})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = store.Close() })
	return store
}

// run starts the load, and returns when all of it has ended.
func (w *world) run() (samples []sample) {
	w.openWriter()
	end := time.AfterFunc(w.duration, w.stop)
	defer end.Stop()
	var load, erasure sync.WaitGroup
	for n := range producers {
		load.Go(func() { w.produce(n) })
	}
	for way := range ways {
		load.Go(func() { w.add(way) })
	}
	for n := range w.readers {
		load.Go(func() { w.read(n) })
	}
	for _, f := range []func(){w.rotate, w.injectFaults, w.work, w.list, w.collect, w.report, func() { samples = w.watch() }} {
		load.Go(f)
	}
	erasure.Go(w.erase)
	load.Wait()
	erasure.Wait()
	return samples
}
