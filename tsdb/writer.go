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

// Writer takes points one by one and sends them in batches. A program has one for each store, shared by all its schemas and
// tenants: Repository.Via gives each of them its way in. It is safe for concurrent use.
//
// A batch closes on its number of points or bytes, or when its first point has waited for Linger; several are under way
// at once, each over a part of the table of its own. Two writes of one point are sent in their order, never at the same
// time; of those that come while an earlier one is under way only the last is sent, and its outcome is that of all, unless
// the schema makes them depend on what is stored. Where the service refuses a point, that point is rejected and the others go on; where it cannot take points now,
// they are sent again, with growing waits, until DeliveryTimeout. Each tenant has a share of the buffer, of the requests and
// of a journal, its turn, and its budget for requests that are repeated, so that one that floods or is refused does not hold
// up the others.
//
// What the writer holds is bounded. While the buffer is full, Enqueue waits and TryEnqueue returns ErrBufferFull.
type Writer struct {
	store  *Store
	opts   WriterOptions
	buffer *buffer.Buffer

	journal *journal.Journal  // nil for none
	records *delivery.Records // of the journal
	watch   *telemetry.Writer // nil where nobody watches

	mu   sync.Mutex
	lost UndeliveredError
}

// The errors of a writer, to tell apart with errors.Is.
var (
	// ErrBufferFull: the writer's buffer, or the tenant's share of it, has no room.
	ErrBufferFull = buffer.ErrFull
	// ErrWriterClosed: the writer is closed, or was closed before it could deliver the point.
	ErrWriterClosed = buffer.ErrClosed
	// ErrDeliveryTimeout: the point could not be delivered within the writer's DeliveryTimeout.
	ErrDeliveryTimeout = buffer.ErrTimeout
)

// NewWriter returns a writer for the store. It runs two goroutines, and one for each request under way, until Writer.Close,
// which must come before the store's. Its error matches ErrInvalid or ErrClosed.
func (s *Store) NewWriter(opts WriterOptions) (*Writer, error) {
	if err := s.admit(); err != nil {
		return nil, err
	}
	if err := opts.check(); err != nil {
		return nil, err
	}
	w := &Writer{store: s, opts: opts}
	o := opts.buffer(s.core.Whole.Timeouts().Write)
	o.Apart = s.core.Views != nil
	if w.watch = s.core.Watch.NewWriter(); w.watch != nil {
		o.Sends, o.Turned = w.sends, w.watch.Down
	}
	if opts.Journal.Dir == "" {
		o.Failed = w.failed
		w.buffer = buffer.New(delivery.Sender{Table: s.core}, o)
		w.watch.Open(w.figures(o))
		return w, nil
	}
	w.records = new(delivery.Records)
	j, err := journal.Open(journal.Options{
		Dir: opts.Journal.Dir, MaxBytes: opts.Journal.MaxBytes,
		Codec: w.records, Erasures: delivery.Erasures{Marks: s.core.Erased},
		ReadRecords: min(maxRead, 16+o.BufferEntries/8), // few where the buffer takes few at a time
		Failed:      w.failed, Broken: w.watch.Journal,
	})
	if err != nil {
		return nil, err
	}
	o.Delivery, o.Freed = 0, j.Freed()
	w.buffer = buffer.New(delivery.Sender{Table: s.core, Journal: j}, o)
	w.journal = j
	j.Start(w.buffer)
	w.watch.Open(w.figures(o))
	return w, nil
}

// maxRead is how many records of a journal are read from the disk at once, at most.
const maxRead = 1000

// Flush sends without delay what has been put before, and returns when all of it has ended and everybody was told. Its
// error is ctx's. What became of the points is reported by EnqueueFunc, EnqueueMany, OnFailure and Stats. It must not be called from a
// function that the writer calls.
func (w *Writer) Flush(ctx context.Context) error {
	ctx = ctxerr.Given(ctx)
	if err := w.admit(); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return ctxerr.Of(ctx)
	}
	if w.journal != nil {
		return w.journal.Flush(ctx)
	}
	return w.buffer.Flush(ctx)
}

// Close takes no more points, sends what it holds, and returns when all of it has ended. Where ctx ends before that,
// requests are broken off, and what is left ends as what is known of it: rejected if it was never sent, and else unknown,
// with ErrWriterClosed. Whoever waits for such a point is still told, but Close does not wait for that.
//
// Its error is an *UndeliveredError where points of Enqueue or TryEnqueue, for which nobody waits, did not end
// stored, whenever that was. A second Close does the same. It must not be called from a function that the writer calls.
//
// With a journal nothing is lost: where ctx ends before all is delivered, the error matches ErrUndelivered and says how many points
// are left for the next writer. Dead letters are no error of it; Stats counts them.
func (w *Writer) Close(ctx context.Context) error {
	ctx = ctxerr.Given(ctx)
	if w == nil || w.buffer == nil {
		return invalid.New(ErrInvalid, "writer", "zero", "one from Store.NewWriter")
	}
	defer w.watch.Close()
	if w.journal != nil {
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

// WriterStats are what a writer holds and has done since it was made.
type WriterStats struct {
	// BufferedPoints and BufferedBytes are what it holds now; the bytes are those that points take in memory.
	BufferedPoints int
	BufferedBytes  int64
	// OldestAge is how long ago the oldest point was put that has not ended: of those in memory, and of those in the journal,
	// whose age is known to about a second, and counts from the opening of the journal where an earlier writer took them.
	OldestAge time.Duration
	// InFlight is how many requests are under way, Slots how many may be now.
	InFlight, Slots int
	// Stored, Rejected and Unknown are the points that have ended so.
	Stored, Rejected, Unknown uint64
	// Requests are the requests made, Retries those of them that repeated one.
	Requests, Retries uint64
	// Blocked is how long callers have waited for room in the buffer, all together.
	Blocked time.Duration
	// Down is why the service is taken for unreachable now: one request at a time asks whether it is back. Nil where it is not.
	Down error
	// Journal is what the writer's journal holds; zero without one.
	Journal JournalStats
}

// JournalStats are what a writer's journal holds.
type JournalStats struct {
	// Stream identifies the journal: 32 hexadecimal digits, drawn when its folder was made.
	Stream string
	// Points are those that are not delivered yet, DeadLetters those that were rejected for what they hold.
	Points, DeadLetters int
	// Erased are the points and dead letters that were dropped since the writer was made, as their tenant or entity is erased.
	Erased uint64
	// Bytes is what both take of Limit.
	Bytes, Limit int64
}

// Stats returns what the writer holds and has done. It costs a look at every request under way: call it now and then, not
// for each point.
func (w *Writer) Stats() WriterStats {
	if w == nil || w.buffer == nil {
		return WriterStats{}
	}
	s := w.buffer.Stats()
	oldest := s.Oldest
	var j JournalStats
	if w.journal != nil {
		st := w.journal.Stats()
		j = JournalStats{Stream: w.journal.Stream(), Points: st.Records, DeadLetters: st.DeadLetters, Bytes: st.Bytes, Limit: st.Limit, Erased: st.Erased}
		oldest = max(oldest, st.OldestAge)
	}
	return WriterStats{
		Journal:        j,
		BufferedPoints: s.Entries, BufferedBytes: s.Bytes, OldestAge: oldest,
		InFlight: s.InFlight, Slots: s.Slots,
		Stored: s.Stored, Rejected: s.Rejected, Unknown: s.Unknown,
		Requests: s.Requests, Retries: s.Retries, Blocked: s.Blocked, Down: s.Down,
	}
}

// admit refuses calls on a writer that cannot work.
func (w *Writer) admit() error {
	if w == nil || w.buffer == nil {
		return invalid.New(ErrInvalid, "writer", "zero", "one from Store.NewWriter")
	}
	return w.store.admit()
}

// Undelivered is a point that a writer took and did not store, or of which it does not know whether it is stored.
type Undelivered struct {
	Tenant  tenant.ID
	Dataset string
	Entity  Entity
	Time    time.Time
	ID      string // in a schema with Identity; else empty
	Outcome Outcome
	// Rollup is the rollup that an event was to be added to, of which Time is the start of the bucket; empty for a point.
	Rollup string
}

// UndeliveredError is the error of Writer.Close where points that nobody waited for were not stored.
type UndeliveredError struct {
	// Total is how many.
	Total int
	// Points are the first 1,000 of them.
	Points []Undelivered
}

// mostListed is how many points an UndeliveredError names.
const mostListed = 1000

// Error implements error. It shows the first point.
func (e *UndeliveredError) Error() string {
	if len(e.Points) == 0 {
		return fmt.Sprintf("tsdb: %d points not delivered", e.Total)
	}
	p := e.Points[0]
	return fmt.Sprintf("tsdb: %d points not delivered; the one of %s at %s in dataset %s of tenant %s is %s: %v",
		e.Total, p.Entity, dataset.Stamp(p.Time), p.Dataset, p.Tenant, p.Outcome.State, p.Outcome.Err)
}

// Unwrap returns a *WriteError for each of Points, in their order.
func (e *UndeliveredError) Unwrap() []error {
	errs := make([]error, len(e.Points))
	for i, p := range e.Points {
		errs[i] = &WriteError{Outcome: p.Outcome}
	}
	return errs
}

// failed notes a point that ended without being stored.
func (w *Writer) failed(it *buffer.Item, out bt.Outcome) {
	p := delivery.Of(it)
	u := undelivered(p, out)
	w.watch.Lost(u.Dataset, u.Tenant.String(), out.Err)
	if p.Caller == nil && w.journal == nil {
		w.mu.Lock()
		if w.lost.Total++; len(w.lost.Points) < mostListed {
			w.lost.Points = append(w.lost.Points, u)
		}
		w.mu.Unlock()
	}
	if w.opts.OnFailure != nil {
		w.opts.OnFailure(u)
	}
}

func undelivered(p *delivery.Pending, out bt.Outcome) Undelivered {
	t := p.Target()
	return Undelivered{
		Tenant: t.Tenant, Dataset: t.Dataset, Entity: Entity{path: t.Path}, Time: t.Time, ID: t.ID, Rollup: t.Rollup,
		Outcome: outcomeOf(out),
	}
}

// offer takes a point whose caller is told when it has ended.
func (w *Writer) offer(ctx context.Context, p *delivery.Pending) error {
	if ctx == nil {
		return ctxerr.Of(ctx)
	}
	p.Taken = w.store.core.Erased.Generation(p)
	tenant, bytes := p.Item.Tenant, p.Size() // the point is given away
	var err error
	if w.journal != nil {
		err = w.journal.Enqueue(ctx, &p.Entry, false)
	} else {
		err = w.buffer.Enqueue(ctx, &p.Item)
	}
	if err == nil {
		w.watch.Took(tenant, bytes)
	}
	return err
}

// take takes a point that nobody waits for; with try it does not wait for room.
func (w *Writer) take(ctx context.Context, p *delivery.Pending, try bool) error {
	if ctx == nil {
		return rejected(ctxerr.Of(ctx)).err()
	}
	p.Taken = w.store.core.Erased.Generation(p)
	tenant, bytes := p.Item.Tenant, p.Size() // the point is given away
	var err error
	switch {
	case w.journal != nil:
		err = outcomeOf(w.journal.EnqueueAndWait(ctx, &p.Entry, try)).err()
	case try:
		err = w.buffer.TryEnqueue(&p.Item)
	default:
		err = w.buffer.Enqueue(ctx, &p.Item)
	}
	switch {
	case err == nil:
		w.watch.Took(tenant, bytes)
	case w.journal == nil:
		return rejected(err).err()
	}
	return err
}
