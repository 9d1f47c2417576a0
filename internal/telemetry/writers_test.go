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
		w.Fatalf("%s %v: %+v", name, with, p)
	}
	return p[0].sum
}

// TestWriterIsMeasured: what it holds, what became of the points, why batches went, and what closed writers have done stays.
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
		t.Errorf("%v points, %v bytes", points, bytes)
	}
	if points, bytes := w.level("tidemark.writer.buffer.capacity.points"), w.level("tidemark.writer.buffer.capacity.bytes"); points != 1000 || bytes != 32<<20 {
		t.Errorf("room for %v points, %v bytes", points, bytes)
	}
	if now, most := w.level("tidemark.writer.requests.inflight"), w.level("tidemark.writer.requests.limit"); now != 0 || most != 4 {
		t.Errorf("%v of %v requests under way", now, most)
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
			t.Errorf("%s: %v points", reason, got)
		}
		if n := w.counted("tidemark.writer.queue.wait", "tidemark.flush.reason="+reason); n != 1 {
			t.Errorf("%s: %d batches", reason, n)
		}
	}
	if got := w.level("tidemark.writer.points", "tidemark.outcome=stored"); got != 20 {
		t.Errorf("%v points stored", got)
	}
	if got := w.level("tidemark.writer.accepted"); got != 10+3 { // since figures were looked at first
		t.Errorf("%v points taken", got)
	}
	if requests, retries := w.level("tidemark.writer.requests"), w.level("tidemark.writer.retries"); requests != 4 || retries != 1 {
		t.Errorf("%v requests, %v retries", requests, retries)
	}
	if got := w.level("tidemark.writer.buffer.points"); got != 0 {
		t.Errorf("%v points in writers that are closed", got)
	}
	if p := w.points("tidemark.journal.points"); len(p) > 0 {
		t.Errorf("there is no journal: %+v", p)
	}
}

// TestJournalIsMeasured: what it holds while the service is away, how old that is after a restart, and its dead letters.
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
		t.Errorf("%v points, %v of %v bytes", points, bytes, room)
	}
	if age := w.level("tidemark.writer.oldest.age"); age <= 0 {
		t.Errorf("the oldest is %v s old", age)
	}
	w.conn.Inject(tsdbtest.FailEntries(grpccodes.InvalidArgument, func(string) bool { return true })) // before a point can go
	end()
	if err := writer.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.forgetNothing()
	if letters, points := w.level("tidemark.journal.dead_letters"), w.level("tidemark.journal.points"); letters != 25 || points != 0 {
		t.Errorf("%v dead letters, %v points", letters, points)
	}
	if err := writer.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// TestCacheIsMeasured: hits, misses, and what it holds.
func TestCacheIsMeasured(t *testing.T) {
	w := newWorld(t, tsdb.Telemetry{}, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Cache: tsdb.CacheOptions{Entries: 100}}})
	for range 3 {
		if _, err := w.repo.Latest(t.Context(), roof, tsdb.MaxStale(time.Minute)); err != nil {
			t.Fatal(err)
		}
	}
	if hits, misses := w.level("tidemark.cache.requests", "tidemark.cache.result=hit"), w.level("tidemark.cache.requests", "tidemark.cache.result=miss"); hits != 2 || misses != 1 {
		t.Errorf("%v hits, %v misses", hits, misses)
	}
	if entries, bytes := w.level("tidemark.cache.entries"), w.level("tidemark.cache.bytes"); entries != 1 || bytes <= 0 {
		t.Errorf("%v entries, %v bytes", entries, bytes)
	}
	if n := w.counted("db.client.operation.duration", "db.operation.name=Latest"); n != 3 {
		t.Errorf("%d calls", n)
	}
	if n := w.counted("tidemark.attempt.duration", "db.operation.name=Latest"); n != 1 {
		t.Errorf("%d requests", n)
	}
}

// TestRollupLag: how long the first closed bucket waits that no worker has computed; nothing where nobody works.
func TestRollupLag(t *testing.T) {
	var now atomic.Int64 // the store reads it of its own accord, too
	now.Store(time.Now().UnixNano())
	w := newWorld(t, tsdb.Telemetry{}, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Clock: func() time.Time { return time.Unix(0, now.Load()) }}})
	if p := w.points("tidemark.rollup.lag"); len(p) > 0 {
		t.Errorf("without a worker: %+v", p)
	}
	worker, err := rollup.NewWorker(w.store, rollup.WorkerOptions{}, rollup.NewJob(schema))
	if err != nil {
		t.Fatal(err)
	}
	lag := func(least, most time.Duration) {
		t.Helper()
		w.forgetNothing()
		got := time.Duration(w.level("tidemark.rollup.lag", "tidemark.dataset=readings", "tidemark.rollup=hour", "db.collection.name=tidemark") * float64(time.Second))
		if got < least || got > most {
			t.Errorf("%v, not %v to %v", got, least, most)
		}
	}
	pass := func() error { _, err := worker.Pass(t.Context()); return err }
	// The points are two days old, and were written just now: too young to be computed.
	now.Add(int64(5 * time.Second))
	if err := pass(); err != nil {
		t.Fatal(err)
	}
	lag(0, 10*time.Second) // the mark counts from the end of its minute
	now.Add(int64(10 * time.Minute))
	w.conn.Inject(tsdbtest.Fail(grpccodes.PermissionDenied).On(tsdbtest.MutateRow))
	w.conn.Inject(tsdbtest.Fail(grpccodes.PermissionDenied).On(tsdbtest.MutateRows))
	w.conn.Inject(tsdbtest.Fail(grpccodes.PermissionDenied).On(tsdbtest.CheckAndMutateRow))
	if err := pass(); err == nil {
		t.Fatal("it succeeded")
	}
	lag(9*time.Minute, 11*time.Minute)
	w.conn.Clear()
	some := func(context.Context) iter.Seq2[tenant.ID, error] {
		return func(yield func(tenant.ID, error) bool) {
			_ = yield(tenant.MustParse("beta"), nil) && yield(tenant.ID{}, errors.New("the others are not known"))
		}
	}
	blind, err := rollup.NewWorker(w.store, rollup.WorkerOptions{Tenants: some}, rollup.NewJob(schema))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := blind.Pass(t.Context()); err == nil {
		t.Fatal("it knows all tenants")
	}
	lag(9*time.Minute, 11*time.Minute) // of a tenant that it has not looked at
	if err := pass(); err != nil {
		t.Fatal(err)
	}
	lag(0, 5*time.Second)
	w.conn.Inject(tsdbtest.Fail(grpccodes.PermissionDenied)) // nothing can be looked at: it grows
	now.Add(int64(time.Hour))
	if err := pass(); err == nil {
		t.Fatal("it succeeded")
	}
	lag(0, 5*time.Second) // by the machine's clock, which has not gone on
	w.conn.Clear()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := worker.Run(ctx); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	w.forgetNothing()
	if p := w.points("tidemark.rollup.lag"); len(p) > 0 {
		t.Errorf("nobody works any more: %+v", p)
	}
}

// TestBlockedCallersAreMeasured: how long they wait for room.
func TestBlockedCallersAreMeasured(t *testing.T) {
	if os.Getenv("TIDEMARK_TEST_TCP") != "" {
		t.Skip("a bubble has no network")
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
			t.Errorf("blocked for %v s, of an outage of 20", got)
		}
		waited := 0.0
		for _, p := range w.points("tidemark.writer.queue.wait", "tidemark.flush.reason=retry") {
			waited = max(waited, p.sum)
		}
		if waited < 19 {
			t.Errorf("a point was sent again after %v s at most", waited)
		}
		if err := w.store.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

// TestAgeOfWhatWaitsOnDisk: a point that comes from the journal into memory later is as old as when it was put.
func TestAgeOfWhatWaitsOnDisk(t *testing.T) {
	if os.Getenv("TIDEMARK_TEST_TCP") != "" {
		t.Skip("a bubble has no network")
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
		time.Sleep(10 * time.Second) // some are delivered, and others have taken their place in memory
		if s := writer.Stats(); s.Stored == 0 || s.Journal.Points == 0 || s.OldestAge < 110*time.Second {
			t.Errorf("%d stored, %d in the journal, the oldest is %v old", s.Stored, s.Journal.Points, s.OldestAge)
		}
		w.conn.Clear()
		if err := errors.Join(writer.Flush(t.Context()), writer.Close(t.Context()), w.store.Close()); err != nil {
			t.Fatal(err)
		}
	})
}
