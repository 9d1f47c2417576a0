package telemetry_test

import (
	"context"
	"errors"
	"iter"
	"os"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	grpccodes "google.golang.org/grpc/codes"

	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/rollup"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// level returns the only value of a metric.
func (w *world) level(name string, with ...string) float64 {
	w.Helper()
	p := w.points(name, with...)
	if len(p) != 1 {
		w.Fatalf("%s %v: got %+v, want one value", name, with, p)
	}
	return p[0].sum
}

// TestWriterIsMeasured checks a writer's metrics: its contents, the outcomes of points, the reasons of batches, and
// that the sums of closed writers remain.
func TestWriterIsMeasured(t *testing.T) {
	w := newWorld(t, tsdb.Telemetry{}, tsdbtest.Options{})
	opts := tsdb.WriterOptions{BatchPoints: 10, Linger: time.Hour, BufferPoints: 1000, BufferBytes: 32 << 20}
	first, err := w.store.NewWriter(opts)
	if err != nil {
		t.Fatal(err)
	}
	put := func(writer *tsdb.Writer, from, n int) {
		t.Helper()
		for i := range n {
			if err := w.repo.Via(writer).Enqueue(t.Context(), roof, w.base.Add(time.Duration(from+i)*time.Second), 1); err != nil {
				t.Fatal(err)
			}
		}
	}
	put(first, 0, 7)
	if points, bytes := w.level("tidemark.writer.buffer.points"), w.level("tidemark.writer.buffer.bytes"); points != 7 || bytes < 7*400 {
		t.Errorf("got %v buffered points of %v bytes", points, bytes)
	}
	if points, bytes := w.level("tidemark.writer.buffer.capacity.points"), w.level("tidemark.writer.buffer.capacity.bytes"); points != 1000 || bytes != 32<<20 {
		t.Errorf("got a capacity of %v points, %v bytes", points, bytes)
	}
	if now, most := w.level("tidemark.writer.requests.inflight"), w.level("tidemark.writer.requests.limit"); now != 0 || most != 4 {
		t.Errorf("got %v of %v requests in flight", now, most)
	}
	if err := first.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	put(first, 100, 10)
	if err := first.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	second, err := w.store.NewWriter(opts)
	if err != nil {
		t.Fatal(err)
	}
	w.conn.Inject(tsdbtest.Fail(grpccodes.Unavailable).On(tsdbtest.MutateRows).Times(1))
	put(second, 200, 3)
	if err := second.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.forgetNothing()
	for reason, want := range map[string]float64{"flush": 7, "full": 10, "close": 3, "retry": 3} {
		if got := w.level("tidemark.writer.batch.size", "tidemark.flush.reason="+reason); got != want {
			t.Errorf("%s: got %v points", reason, got)
		}
		if n := w.counted("tidemark.writer.queue.wait", "tidemark.flush.reason="+reason); n != 1 {
			t.Errorf("%s: got %d batches", reason, n)
		}
	}
	if got := w.level("tidemark.writer.points", "tidemark.outcome=stored"); got != 20 {
		t.Errorf("got %v stored points, want 20", got)
	}
	if got := w.level("tidemark.writer.accepted"); got != 10+3 { // the counter begins at the first collection
		t.Errorf("got %v accepted points, want 13", got)
	}
	if requests, retries := w.level("tidemark.writer.requests"), w.level("tidemark.writer.retries"); requests != 4 || retries != 1 {
		t.Errorf("got %v requests and %v retries, want 4 and 1", requests, retries)
	}
	if got := w.level("tidemark.writer.buffer.points"); got != 0 {
		t.Errorf("got %v points in closed writers, want 0", got)
	}
	if p := w.points("tidemark.journal.points"); len(p) > 0 {
		t.Errorf("without a journal: got %+v, want no metrics", p)
	}
}

// TestJournalIsMeasured checks a journal's metrics: its contents during an outage, the age of its oldest point after a
// restart, and its dead letters.
func TestJournalIsMeasured(t *testing.T) {
	w := newWorld(t, tsdb.Telemetry{}, tsdbtest.Options{})
	opts := tsdb.WriterOptions{Journal: tsdb.JournalOptions{Dir: t.TempDir(), MaxBytes: 16 << 20}}
	writer, err := w.store.NewWriter(opts)
	if err != nil {
		t.Fatal(err)
	}
	end := w.conn.Outage()
	for i := range 25 {
		if err := w.repo.Via(writer).Enqueue(t.Context(), roof, w.base.Add(time.Duration(i)*time.Second), 1); err != nil {
			t.Fatal(err)
		}
	}
	w.forgetNothing()
	if points, bytes, room := w.level("tidemark.journal.points"), w.level("tidemark.journal.bytes"), w.level("tidemark.journal.capacity"); points != 25 || bytes <= 0 || room != 16<<20 {
		t.Errorf("got %v points, %v of %v bytes", points, bytes, room)
	}
	if age := w.level("tidemark.writer.oldest.age"); age <= 0 {
		t.Errorf("got an oldest age of %v s", age)
	}
	w.conn.Inject(tsdbtest.FailEntries(grpccodes.InvalidArgument, func(string) bool { return true })) // before a point can be sent
	end()
	if err := writer.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.forgetNothing()
	if letters, points := w.level("tidemark.journal.dead_letters"), w.level("tidemark.journal.points"); letters != 25 || points != 0 {
		t.Errorf("got %v dead letters and %v points, want 25 and 0", letters, points)
	}
	if err := writer.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// TestCacheIsMeasured checks the cache's metrics: hits, misses and contents.
func TestCacheIsMeasured(t *testing.T) {
	w := newWorld(t, tsdb.Telemetry{}, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Cache: tsdb.CacheOptions{Entries: 100}}})
	for range 3 {
		if _, err := w.repo.Latest(t.Context(), roof, tsdb.MaxStale(time.Minute)); err != nil {
			t.Fatal(err)
		}
	}
	if hits, misses := w.level("tidemark.cache.requests", "tidemark.cache.result=hit"), w.level("tidemark.cache.requests", "tidemark.cache.result=miss"); hits != 2 || misses != 1 {
		t.Errorf("got %v hits and %v misses, want 2 and 1", hits, misses)
	}
	if entries, bytes := w.level("tidemark.cache.entries"), w.level("tidemark.cache.bytes"); entries != 1 || bytes <= 0 {
		t.Errorf("got %v entries of %v bytes", entries, bytes)
	}
	if n := w.counted("db.client.operation.duration", "db.operation.name=Latest"); n != 3 {
		t.Errorf("got %d calls, want 3", n)
	}
	if n := w.counted("tidemark.attempt.duration", "db.operation.name=Latest"); n != 1 {
		t.Errorf("got %d requests, want 1", n)
	}
}

// TestRollupLag checks the lag of a rollup: how long the first closed bucket has waited for a worker. Without a worker
// there is none.
func TestRollupLag(t *testing.T) {
	var now atomic.Int64 // background work of the store reads it too
	now.Store(time.Now().UnixNano())
	w := newWorld(t, tsdb.Telemetry{}, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Clock: func() time.Time { return time.Unix(0, now.Load()) }}})
	if p := w.points("tidemark.rollup.lag"); len(p) > 0 {
		t.Errorf("without a worker: got %+v, want none", p)
	}
	worker, err := rollup.NewWorker(w.store, rollup.WorkerOptions{}, schema)
	if err != nil {
		t.Fatal(err)
	}
	lag := func(least, most time.Duration) {
		t.Helper()
		w.forgetNothing()
		got := time.Duration(w.level("tidemark.rollup.lag", "tidemark.dataset=readings", "tidemark.rollup=hour", "db.collection.name=tidemark") * float64(time.Second))
		if got < least || got > most {
			t.Errorf("got a lag of %v, want %v to %v", got, least, most)
		}
	}
	pass := func() error { _, err := worker.Pass(t.Context()); return err }
	// The points are two days old but were just written, so it is too early to compute them.
	now.Add(int64(5 * time.Second))
	if err := pass(); err != nil {
		t.Fatal(err)
	}
	lag(0, 10*time.Second) // the mark becomes due after the end of its minute
	now.Add(int64(10 * time.Minute))
	w.conn.Inject(tsdbtest.Fail(grpccodes.PermissionDenied).On(tsdbtest.MutateRow))
	w.conn.Inject(tsdbtest.Fail(grpccodes.PermissionDenied).On(tsdbtest.MutateRows))
	w.conn.Inject(tsdbtest.Fail(grpccodes.PermissionDenied).On(tsdbtest.CheckAndMutateRow))
	if err := pass(); err == nil {
		t.Fatal("got nil, want an error")
	}
	lag(9*time.Minute, 11*time.Minute)
	w.conn.Clear()
	some := func(context.Context) iter.Seq2[tenant.ID, error] {
		return func(yield func(tenant.ID, error) bool) {
			_ = yield(tenant.MustParse("beta"), nil) && yield(tenant.ID{}, errors.New("the list of tenants broke off"))
		}
	}
	blind, err := rollup.NewWorker(w.store, rollup.WorkerOptions{Tenants: some}, schema)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := blind.Pass(t.Context()); err == nil {
		t.Fatal("got nil from a pass without all tenants, want an error")
	}
	lag(9*time.Minute, 11*time.Minute) // of a tenant that the worker has not read
	if err := pass(); err != nil {
		t.Fatal(err)
	}
	lag(0, 5*time.Second)
	w.conn.Inject(tsdbtest.Fail(grpccodes.PermissionDenied)) // no read succeeds, so the lag grows
	now.Add(int64(time.Hour))
	if err := pass(); err == nil {
		t.Fatal("got nil, want an error")
	}
	lag(0, 5*time.Second) // by the machine's clock, which has not advanced
	w.conn.Clear()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := worker.Run(ctx); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	w.forgetNothing()
	if p := w.points("tidemark.rollup.lag"); len(p) > 0 {
		t.Errorf("without a worker again: got %+v, want none", p)
	}
}

// TestBlockedCallersAreMeasured checks the metric for how long callers wait for room.
func TestBlockedCallersAreMeasured(t *testing.T) {
	if os.Getenv("TIDEMARK_TEST_TCP") != "" {
		t.Skip("synctest bubbles have no network")
	}
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, tsdb.Telemetry{}, tsdbtest.Options{})
		writer, err := w.store.NewWriter(tsdb.WriterOptions{BufferPoints: 1, DeliveryTimeout: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		end := w.conn.Outage()
		time.AfterFunc(20*time.Second, end)
		for i := range 2 {
			if err := w.repo.Via(writer).Enqueue(t.Context(), roof, w.base.Add(time.Duration(i)*time.Second), 1); err != nil {
				t.Fatal(err)
			}
		}
		if err := writer.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		w.forgetNothing()
		if got := w.level("tidemark.writer.blocked.time"); got < 19 || got > 40 {
			t.Errorf("got %v s of blocked time in an outage of 20 s", got)
		}
		waited := 0.0
		for _, p := range w.points("tidemark.writer.queue.wait", "tidemark.flush.reason=retry") {
			waited = max(waited, p.sum)
		}
		if waited < 19 {
			t.Errorf("got a longest wait of %v s", waited)
		}
		if err := w.store.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

// TestAgeOfJournaledPoints checks that the age of a point that moves from the journal to memory counts from when it was
// enqueued.
func TestAgeOfJournaledPoints(t *testing.T) {
	if os.Getenv("TIDEMARK_TEST_TCP") != "" {
		t.Skip("synctest bubbles have no network")
	}
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, tsdb.Telemetry{}, tsdbtest.Options{})
		writer, err := w.store.NewWriter(tsdb.WriterOptions{BufferPoints: 10, BatchPoints: 10, Journal: tsdb.JournalOptions{Dir: dir}})
		if err != nil {
			t.Fatal(err)
		}
		end := w.conn.Outage()
		for i := range 40 {
			if err := w.repo.Via(writer).Enqueue(t.Context(), roof, w.base.Add(time.Duration(i)*time.Second), 1); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(100 * time.Second)
		w.conn.Inject(tsdbtest.Fail(grpccodes.Unavailable).On(tsdbtest.MutateRows).Skip(2))
		end()
		time.Sleep(10 * time.Second) // some points are delivered, and others have moved to memory
		if s := writer.Stats(); s.Stored == 0 || s.Journal.Points == 0 || s.OldestAge < 110*time.Second {
			t.Errorf("got %d points stored, %d in the journal, an oldest age of %v; want an age of at least 110 s", s.Stored, s.Journal.Points, s.OldestAge)
		}
		w.conn.Clear()
		if err := errors.Join(writer.Flush(t.Context()), writer.Close(t.Context()), w.store.Close()); err != nil {
			t.Fatal(err)
		}
	})
}
