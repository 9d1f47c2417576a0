package tsdb

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/ctxerr"
	"github.com/tidemark-go/tidemark/internal/ingest/buffer"
	"github.com/tidemark-go/tidemark/internal/ingest/delivery"
	"github.com/tidemark-go/tidemark/internal/ingest/journal"
	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/store/dataset"
	"github.com/tidemark-go/tidemark/internal/telemetry"
	"github.com/tidemark-go/tidemark/tenant"
)

// Writer takes single points and sends them in batches. A program needs one per store; all schemas and tenants share
// it, through Repository.Via. It is safe for concurrent use.
//
// A batch is sent when it reaches its number of points or bytes, or when its first point has waited for Linger. Several
// batches are under way at once, each for its own part of the table. Two writes of one point are sent in order, never
// at the same time. If several writes of one point arrive while an earlier one is under way, only the last is sent, and
// its outcome applies to all of them, unless the schema makes writes depend on the stored value.
//
// If the service refuses a point, that point is rejected and the others continue. If the service is temporarily
// unavailable, points are sent again, with growing waits, until DeliveryTimeout. Each tenant has its own share of the
// buffer, the requests and the journal, and its own retry budget, so a tenant that floods or fails does not block the
// others.
//
// Memory is bounded: while the buffer is full, Enqueue waits and TryEnqueue returns ErrBufferFull.
type Writer struct {
	writerGate

	store  *Store
	opts   WriterOptions
	buffer *buffer.Buffer

	journal *journal.Journal  // nil for none
	records *delivery.Records // of the journal
	changes changes
	watch   *telemetry.Writer // nil if telemetry is disabled

	mu         sync.Mutex
	lost       UndeliveredError
	unreported []Undelivered // OnFailure gets them
	reporting  sync.Mutex    // held while OnFailure is called
}

// ErrBufferFull means that the writer's buffer, or the tenant's share of it, is full.
var ErrBufferFull = buffer.ErrFull

// NewWriter returns a writer for the store. It runs two goroutines, plus one per request under way, until Writer.Close.
// Close the writer before the store. The error matches ErrInvalid or ErrClosed; with a journal also ErrLocked,
// ErrDamaged or the file system's error.
func (s *Store) NewWriter(opts WriterOptions) (*Writer, error) {
	if err := s.admit(); err != nil {
		return nil, err
	}
	if err := opts.check(); err != nil {
		return nil, err
	}
	w := &Writer{store: s, opts: opts}
	w.changes.writer = w
	o := opts.buffer(s.core.Whole.Timeouts().Write)
	o.Apart = s.core.Views != nil
	if w.watch = s.core.Watch.NewWriter(); w.watch != nil {
		o.Sends, o.HealthChanged = w.sends, w.watch.Down
	}
	if opts.Journal.Dir == "" {
		o.Failed, o.Free = w.failed, delivery.Free
		w.buffer = buffer.New(delivery.Sender{Table: s.core, FlowControl: opts.FlowControl}, o)
		w.watch.Open(w.figures(o))
		return w, nil
	}
	w.records = new(delivery.Records)
	j, err := journal.Open(journal.Options{
		Dir: opts.Journal.Dir, MaxBytes: opts.Journal.MaxBytes,
		Codec: w.records, Erasures: delivery.Erasures{Marks: s.core.Erased},
		ReadRecords: min(maxRead, 16+o.BufferEntries/8), // small buffers need few
		Failed:      w.failed, Broken: w.watch.Journal,
	})
	if err != nil {
		return nil, err
	}
	w.watch.DroppedCommit(j.Stats().Dropped)
	o.Delivery, o.Freed = 0, j.Freed()
	w.buffer = buffer.New(delivery.Sender{Table: s.core, Journal: j, FlowControl: opts.FlowControl}, o)
	w.journal = j
	s.journals.add(j)
	j.Start(w.buffer)
	w.watch.Open(w.figures(o))
	return w, nil
}

// maxRead is the maximum number of journal records that are read at once.
const maxRead = 1000

// Flush sends all points that were enqueued before it, without Linger, and returns when all have an outcome and their
// callers have it. Its error is that of ctx. Outcomes are reported by EnqueueFunc, EnqueueMany, OnFailure and Stats. Do
// not call it from a function that the writer calls.
func (w *Writer) Flush(ctx context.Context) error {
	ctx = ctxerr.Given(ctx)
	if err := w.admit(); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return ctxerr.Of(ctx)
	}
	return w.changes.flush(func() error {
		if w.journal != nil {
			return w.journal.Flush(ctx)
		}
		return w.buffer.Flush(ctx)
	})
}

// Close stops taking points, sends those that it holds, and returns when all have an outcome. If ctx ends first, Close
// cancels the requests. The remaining points then end with ErrClosed: Rejected if they were never sent, otherwise
// Unknown. Their callers still get the outcomes, but Close does not wait for that: its error matches ctx's, and lacks
// these points. A second Close waits for them.
//
// The error is an *UndeliveredError if any point of Enqueue or TryEnqueue, at any time, was not stored. Do not call
// Close from a function that the writer calls.
//
// With a journal nothing is lost: if ctx ends first, the error matches ErrUndelivered and says how many points remain
// for the next writer. A second Close returns the same. Dead letters do not cause an error; Stats counts them.
func (w *Writer) Close(ctx context.Context) error {
	ctx = ctxerr.Given(ctx)
	if w == nil || w.buffer == nil {
		return invalid.New(ErrInvalid, "writer", "the zero value", "a writer from Store.NewWriter")
	}
	defer w.watch.Close()
	w.changes.close(ctx)
	if w.journal != nil {
		defer w.store.journals.remove(w.journal)
		return w.journal.Close(ctx)
	}
	err := w.buffer.Close(ctx)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.lost.Total > 0 {
		lost := w.lost
		lost.Points = slices.Clone(lost.Points)
		return errors.Join(&lost, err)
	}
	return err
}

// WriterStats are the content and the counters of a writer since it was made.
type WriterStats struct {
	// BufferedPoints and BufferedBytes are the points in the buffer now and their size in memory.
	BufferedPoints int
	BufferedBytes  int64
	// OldestAge is the time since the oldest point without an outcome was enqueued, in memory or in the journal. For
	// the journal it is accurate to about a second; points of an earlier writer count from the opening of the journal.
	OldestAge time.Duration
	// InFlight is the number of requests under way, Slots the current limit.
	InFlight, Slots int
	// RateLimit is how many bytes of points in memory the writer may send each second while Bigtable asks for less; 0
	// means no limit.
	RateLimit int64
	// Stored, Rejected and Unknown count points by outcome.
	Stored, Rejected, Unknown uint64
	// Unchanged counts points that sinks with OnChange left out.
	Unchanged uint64
	// Requests counts all requests, Retries those that repeated one.
	Requests, Retries uint64
	// Blocked is the total time that callers have waited for space in the buffer.
	Blocked time.Duration
	// Down is why the service is considered unreachable, or nil. While it is set, the writer sends one probing request
	// at a time.
	Down error
	// Journal is the state of the writer's journal; zero without one.
	Journal JournalStats
}

// JournalStats are the content and the counters of a writer's journal.
type JournalStats struct {
	// Stream identifies the journal: 32 hexadecimal digits, chosen at random when its folder was created.
	Stream string
	// Points is the number of undelivered points, DeadLetters the number of points that were rejected because of their
	// content.
	Points, DeadLetters int
	// Erased counts points and dead letters that were dropped, since the writer was made, because their tenant or
	// entity was erased.
	Erased uint64
	// Bytes is the size of points and dead letters, of at most Limit.
	Bytes, Limit int64
}

// Stats returns the writer's statistics. It visits every request under way, so do not call it for each point.
func (w *Writer) Stats() WriterStats {
	if w == nil || w.buffer == nil {
		return WriterStats{}
	}
	s := w.buffer.Stats()
	var j JournalStats
	if w.journal != nil {
		st := w.journal.Stats()
		j = JournalStats{Stream: w.journal.Stream(), Points: st.Records, DeadLetters: st.DeadLetters, Bytes: st.Bytes, Limit: st.Limit, Erased: st.Erased}
		s.Oldest = max(s.Oldest, st.OldestAge)
	}
	return WriterStats{
		Journal:        j,
		BufferedPoints: s.Entries, BufferedBytes: s.Bytes, OldestAge: s.Oldest,
		InFlight: s.InFlight, Slots: s.Slots, RateLimit: s.Rate,
		Stored: s.Stored, Rejected: s.Rejected, Unknown: s.Unknown, Unchanged: w.changes.unchanged(),
		Requests: s.Requests, Retries: s.Retries, Blocked: s.Blocked, Down: s.Down,
	}
}

// figures returns the function from which the writer's metrics are read.
func (w *Writer) figures(o buffer.Options) func() telemetry.WriterFigures {
	return func() telemetry.WriterFigures {
		s := w.Stats()
		return telemetry.WriterFigures{
			Points: int64(s.BufferedPoints), Bytes: s.BufferedBytes,
			CapacityPoints: int64(o.BufferEntries), CapacityBytes: o.BufferBytes,
			Oldest: s.OldestAge, InFlight: int64(s.InFlight), Slots: int64(s.Slots), RateLimit: s.RateLimit, Down: s.Down != nil,
			Stored: int64(s.Stored), Rejected: int64(s.Rejected), Unknown: int64(s.Unknown), Unchanged: int64(s.Unchanged),
			Requests: int64(s.Requests), Retries: int64(s.Retries), Blocked: s.Blocked,
			Journal: w.journal != nil, JournalPoints: int64(s.Journal.Points), JournalBytes: s.Journal.Bytes,
			JournalLimit: s.Journal.Limit, Dead: int64(s.Journal.DeadLetters),
		}
	}
}

// sends reports a request.
func (w *Writer) sends(s buffer.Sending) {
	w.watch.Sends(context.Background(), telemetry.Batch{Points: s.Items, Wait: s.Wait, Reason: string(s.Reason)})
}

// admit returns an error if the writer or its store cannot be used.
func (w *Writer) admit() error {
	if w == nil || w.buffer == nil {
		return invalid.New(ErrInvalid, "writer", "the zero value", "a writer from Store.NewWriter")
	}
	return w.store.admit()
}

// Undelivered is a point, or a rollup event, that a writer took and that is rejected or unknown.
type Undelivered struct {
	Tenant  tenant.ID
	Dataset string
	Entity  Entity
	Time    time.Time
	ID      string // empty without Identity
	Outcome Outcome
	// Rollup is the rollup of an event; Time is then the start of the bucket. It is empty for a point.
	Rollup string
}

// UndeliveredError is the error of Writer.Close if points of Enqueue or TryEnqueue were not stored.
type UndeliveredError struct {
	// Total is the number of these points.
	Total int
	// Points are the first 1,000 of them.
	Points []Undelivered
}

const mostListed = 1000

// Error returns the number of points and the first one.
func (e *UndeliveredError) Error() string {
	e = invalid.OrZero(e)
	if len(e.Points) == 0 {
		return fmt.Sprintf("tsdb: %d points not delivered", e.Total)
	}
	p := e.Points[0]
	return fmt.Sprintf("tsdb: %d points not delivered; the one of %s at %s in dataset %s of tenant %s is %s: %v",
		e.Total, p.Entity, dataset.Stamp(p.Time), p.Dataset, p.Tenant, p.Outcome.State, p.Outcome.Err)
}

// Unwrap returns one *WriteError per element of Points, in order.
func (e *UndeliveredError) Unwrap() []error {
	return causes(invalid.OrZero(e).Points, func(u Undelivered) error { return &WriteError{Outcome: u.Outcome} })
}

// failed records and reports a point that was not stored. It returns after OnFailure.
func (w *Writer) failed(it *buffer.Item, out bt.Outcome) {
	w.record(it, out)
	w.reporting.Lock()
	w.report()
}

// lose is failed for a point whose outcome nobody waits for. It does not wait for another call of OnFailure, which may
// be the caller.
func (w *Writer) lose(it *buffer.Item, out bt.Outcome) {
	w.record(it, out)
	if w.reporting.TryLock() {
		w.report()
	}
}

// report calls OnFailure for all points that it has not got, and ends the caller's lock of reporting. If OnFailure
// panics, the next call goes on behind that point.
func (w *Writer) report() {
	var list []Undelivered
	defer func() {
		if len(list) > 0 {
			w.mu.Lock()
			w.unreported = append(list[1:], w.unreported...)
			w.mu.Unlock()
			w.reporting.Unlock()
		}
	}()
	for {
		w.mu.Lock()
		if list, w.unreported = w.unreported, nil; len(list) == 0 {
			w.reporting.Unlock() // under the other lock, so that no point is left
			w.mu.Unlock()
			return
		}
		w.mu.Unlock()
		for ; len(list) > 0; list = list[1:] {
			w.opts.OnFailure(list[0])
		}
	}
}

// record records a point that was not stored, for OnFailure too.
func (w *Writer) record(it *buffer.Item, out bt.Outcome) {
	p := delivery.Of(it)
	t := p.Target()
	u := Undelivered{
		Tenant: t.Tenant, Dataset: t.Dataset, Entity: Entity{path: t.Path}, Time: t.Time, ID: t.ID, Rollup: t.Rollup,
		Outcome: outcomeOf(out),
	}
	w.watch.Lost(u.Dataset, u.Tenant.String(), out.Err)
	w.changes.failed(p)
	w.mu.Lock()
	defer w.mu.Unlock()
	if silent(p.Caller) && w.journal == nil {
		if w.lost.Total++; len(w.lost.Points) < mostListed {
			w.lost.Points = append(w.lost.Points, u)
		}
	}
	if w.opts.OnFailure != nil {
		w.unreported = append(w.unreported, u)
	}
}

// take enqueues a point. With try it does not wait for space. A point without a caller waits until it is in the
// journal, if there is one. The outcome has no error if the writer has taken the point.
func (w *Writer) take(ctx context.Context, p *delivery.Pending, try bool) (out Outcome) {
	if ctx == nil {
		return rejected(ctxerr.Of(ctx))
	}
	p.Taken = w.store.core.Erased.Generation(p)
	tenant, bytes := p.Item.Tenant, p.Size() // read before the writer owns the point
	var err error
	switch {
	case w.journal != nil && p.Caller == nil:
		out = outcomeOf(w.journal.EnqueueAndWait(ctx, &p.Entry, try))
	case w.journal != nil:
		err = w.journal.Enqueue(ctx, &p.Entry, try)
	case try:
		err = w.buffer.TryEnqueue(&p.Item)
	default:
		err = w.buffer.Enqueue(ctx, &p.Item)
	}
	if err != nil {
		out = rejected(err)
	}
	if out.Err == nil {
		w.watch.Took(tenant, bytes)
	}
	return out
}
