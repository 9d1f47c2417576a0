package tsdb

import (
	"context"
	"sync"
	"time"

	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/ctxerr"
	"github.com/tidemark-go/tidemark/internal/ingest/delivery"
	"github.com/tidemark-go/tidemark/internal/ingest/journal"
	"github.com/tidemark-go/tidemark/internal/inside"
	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/store/dataset"
	"github.com/tidemark-go/tidemark/internal/store/points"
	"github.com/tidemark-go/tidemark/tenant"
)

// Sink writes a repository's points through a Writer, in batches. It has the same types and the same tenant isolation
// as the repository. Repository.Via makes one. It holds no resources, so make one per request. It is safe for
// concurrent use.
type Sink[T any] struct {
	repo   *Repository[T]
	writer *Writer
	change *OnChange[T] // nil stores every point
}

// Via returns a sink that writes through a writer of the same store. It does no I/O and cannot fail: each call on the
// sink reports an invalid repository or writer.
func (r *Repository[T]) Via(w *Writer) *Sink[T] { return &Sink[T]{repo: r, writer: w} }

// Enqueue gives a point to the writer, and waits while the buffer is full, until ctx ends. Nil means that the writer
// has taken the point, not that it is stored. Failures after that are reported by the writer's OnFailure, Stats and
// Close.
//
// With a journal, Enqueue waits until the point is synced to disk, some hundred microseconds; nil then means that the
// writer will deliver the point. In a loop use EnqueueFunc or EnqueueMany: their points share syncs, which is many
// times faster. A read may not find the point yet; Writer.Flush waits until all points are delivered.
//
// Errors are a *WriteError. It matches ErrRejected, and the reason: those of Repository.Put, ErrClosed, the error of
// Admit, or ctx's error. With a journal it matches ErrUnknown if ctx ends during the sync.
func (s *Sink[T]) Enqueue(ctx context.Context, e Entity, t time.Time, v T) error {
	return s.enqueue(ctx, s.point(e, t, v), false, nil)
}

// TryEnqueue is Enqueue without waiting: while the buffer is full, the error matches ErrBufferFull.
func (s *Sink[T]) TryEnqueue(ctx context.Context, e Entity, t time.Time, v T) error {
	return s.enqueue(ctx, s.point(e, t, v), true, nil)
}

// enqueue gives a point to the writer. With try it does not wait for space. If done is nil, it waits until the point is
// in the journal; otherwise done gets the outcome.
func (s *Sink[T]) enqueue(ctx context.Context, point Point[T], try bool, done func(Outcome)) error {
	if s != nil && s.change != nil {
		return s.offer(ctx, point, try, done)
	}
	p, err := s.prepare(ctx, point, callerOf(done))
	out := rejected(err)
	if err == nil {
		s.writer.changes.touch(ctx, p, try)
		out = s.writer.take(ctx, p, try)
	}
	return out.refusal(done)
}

// EnqueueFunc is Enqueue with a callback. It calls done exactly once with the outcome: Stored, Rejected or Unknown, or,
// with a journal, Journaled as soon as the point is on disk, or, with OnChange, Unchanged. To decide whether to
// acknowledge a message, check the outcome's Err: it is nil for Stored, Journaled and Unchanged.
//
// If EnqueueFunc returns an error, it has already called done with it, on the caller's goroutine; so it may with
// Unchanged. Otherwise done is called later, on a goroutine of the writer that handles one point after the other. A
// slow callback delays other points and, once the buffer is full, callers of Enqueue. It must not call Enqueue, Flush
// or Close of the same writer.
func (s *Sink[T]) EnqueueFunc(ctx context.Context, e Entity, t time.Time, v T, done func(Outcome)) error {
	if done == nil {
		return rejected(invalid.New(ErrInvalid, "done", "nil", "a function")).err()
	}
	return s.enqueue(ctx, s.point(e, t, v), false, done)
}

// EnqueueMany gives points to the writer, waits until all have an outcome, and returns one outcome per point, in order.
// The error is nil if all are Stored, Journaled or Unchanged, and a *BatchError otherwise. A point that cannot be
// stored does not affect the others. If ctx ends first, points without an outcome are Unknown with ctx's error; the
// writer still sends those that it has taken.
//
// It takes up to Linger longer than Repository.PutMany, and shares its requests with all other points of the writer.
func (s *Sink[T]) EnqueueMany(ctx context.Context, points []Point[T]) ([]Outcome, error) {
	return gather(ctx, len(points), func(i int, done func(Outcome)) error { return s.enqueue(ctx, points[i], false, done) })
}

// caller is a function that gets the outcome of a write.
type caller func(Outcome)

// callerOf returns done as a caller, or nil.
func callerOf(done func(Outcome)) journal.Caller {
	if done == nil {
		return nil
	}
	return caller(done)
}

// Ended implements journal.Caller.
func (c caller) Ended(o bt.Outcome) { c(outcomeOf(o)) }

// gather makes n calls, also one after a refused one, and collects their outcomes until ctx ends.
func gather(ctx context.Context, n int, call func(i int, done func(Outcome)) error) ([]Outcome, error) {
	g := gathering{outcomes: make([]Outcome, n), left: n, done: make(chan struct{})}
	if n == 0 {
		return g.outcomes, nil
	}
	for i := range n {
		_ = call(i, func(o Outcome) { g.tell(i, o) })
	}
	outcomes := g.wait(ctxerr.Given(ctx))
	return outcomes, batchError(outcomes)
}

// gathering collects the outcomes of one call of gather.
type gathering struct {
	mu       sync.Mutex
	outcomes []Outcome
	left     int
	gone     bool // wait has returned
	done     chan struct{}
}

func (g *gathering) tell(i int, o Outcome) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.gone {
		return
	}
	g.outcomes[i] = o
	if g.left--; g.left == 0 {
		close(g.done)
	}
}

func (g *gathering) wait(ctx context.Context) []Outcome {
	select {
	case <-g.done:
	case <-ctx.Done():
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.gone = true
	for i := range g.outcomes {
		if g.outcomes[i].State == 0 {
			g.outcomes[i] = Outcome{State: Unknown, Err: ctxerr.Of(ctx)}
		}
	}
	return g.outcomes
}

// point returns a point with the repository's ID.
func (s *Sink[T]) point(e Entity, t time.Time, v T) Point[T] {
	p := Point[T]{Entity: e, Time: t, Value: v}
	if s != nil && s.repo != nil {
		p.ID = s.repo.id
	}
	return p
}

// prepare checks a point and encodes it for the writer.
func (s *Sink[T]) prepare(ctx context.Context, point Point[T], c journal.Caller) (*delivery.Pending, error) {
	if s == nil {
		return nil, invalid.New(ErrInvalid, "sink", "nil", "a sink from Repository.Via")
	}
	if err := s.writer.admitFrom(ctx, s.repo.part()); err != nil {
		return nil, err
	}
	w, err := s.repo.encode(s.repo.datasetForCheck(), point, s.repo.store.core.Clock())
	if err != nil {
		return nil, err
	}
	return s.writer.pending(ctx, &s.repo.access, point.Entity.path, w, c)
}

// admitFrom admits a point of a repository.
func (w *Writer) admitFrom(ctx context.Context, a *access) error {
	if err := a.allowed(ctx); err != nil {
		return err
	}
	if err := a.store.core.Erased.AdmitCached(ctx, a.rows.Tenant); err != nil {
		return err
	}
	if err := w.admit(); err != nil {
		return err
	}
	if w.store != a.store {
		return invalid.New(ErrInvalid, "writer", "a writer of another store", "a writer of the repository's store")
	}
	return nil
}

// datasetForCheck returns the dataset by which a writer checks points.
func (a *access) datasetForCheck() *dataset.Dataset {
	return a.store.core.DatasetForCheck(a.rows.D, a.rows.Tenant)
}

// pending returns an encoded point for the writer. Admit and the limits of the tenant have counted it.
func (w *Writer) pending(ctx context.Context, a *access, path string, write points.Write, c journal.Caller) (*delivery.Pending, error) {
	write.D = a.rows.D // the class is chosen when the point is sent
	p := delivery.NewPoint(a.rows.Tenant, write, c)
	if err := w.admitBytes(ctx, a.rows.Tenant, p.Item.Bytes); err != nil {
		return nil, err
	}
	if err := a.rows.CountWrite(path, &p.Write); err != nil {
		return nil, err
	}
	return p, nil
}

// Add enqueues a rollup event in the writer's journal. If done is nil, it waits until the event is in the journal;
// otherwise it calls done with the outcome.
func (c writerCore) Add(ctx context.Context, event func() (inside.Event, error), done func(Outcome)) error {
	var p *delivery.Pending
	w := c.Value()
	ev, err := event()
	if err == nil {
		p, err = w.prepareEvent(ctx, ev, done)
	}
	out := rejected(err)
	if err == nil {
		out = w.take(ctx, p, false)
	}
	return out.refusal(done)
}

// Gather makes n calls of Add, or of what calls it, and collects their outcomes.
func (writerCore) Gather(ctx context.Context, n int, call func(i int, done func(Outcome)) error) ([]Outcome, error) {
	return gather(ctx, n, call)
}

// BatchError returns the outcomes of several writes as an error; nil if all are stored.
func (writerCore) BatchError(outcomes []Outcome) error { return batchError(outcomes) }

func (w *Writer) prepareEvent(ctx context.Context, ev inside.Event, done func(Outcome)) (*delivery.Pending, error) {
	if err := w.admitJournal(ctx); err != nil {
		return nil, err
	}
	if w.store.core.Whole != ev.Table {
		return nil, invalid.New(ErrInvalid, "writer", "a writer of another store", "a writer of the repository's store")
	}
	to, err := w.records.Rollup(delivery.RollupDescription{Dataset: ev.Dataset, Key: ev.Fields, Salts: ev.Salts}, ev.Rollup)
	if err != nil {
		return nil, err
	}
	p, err := delivery.NewEvent(ev.Tenant, to, ev.Path, ev.Event, callerOf(done))
	if err != nil {
		return nil, err
	}
	return p, w.admitBytes(ctx, ev.Tenant, p.Item.Bytes)
}

func (w *Writer) admitBytes(ctx context.Context, id tenant.ID, bytes int) error {
	if w.opts.Admit == nil {
		return nil
	}
	return w.opts.Admit(ctx, id, bytes)
}
