package tsdb

import (
	"context"
	"sync"
	"time"

	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/ctxerr"
	"github.com/tidemark-go/tidemark/internal/ingest/delivery"
	"github.com/tidemark-go/tidemark/internal/ingest/journal"
	"github.com/tidemark-go/tidemark/internal/invalid"
)

// Sink is a repository's way in through a writer: the same types and the same walls, with points that are sent in batches.
// Repository.Via makes one. It holds no resources, is safe for concurrent use, and may be made anew for each request.
type Sink[T any] struct {
	repo   *Repository[T]
	writer *Writer
}

// Via returns the repository's way in through a writer of the same store. It does no I/O and cannot fail: what is wrong
// with the repository or the writer is reported by each call on the sink.
func (r *Repository[T]) Via(w *Writer) *Sink[T] { return &Sink[T]{repo: r, writer: w} }

// Enqueue hands a point to the writer, and waits while the buffer is full, until ctx ends. That it returns nil says that the
// point was taken, not that it is stored: what becomes of it later is told by the writer's OnFailure, its Stats and the
// error of its Close.
//
// With a journal it waits until the point is on disk, so that nil says that it will be delivered. That is a sync for each
// Enqueue of a loop, some hundred microseconds: a loop is many times faster with EnqueueFunc or EnqueueMany, whose points share
// syncs. A read just afterwards may not find the point yet; Writer.Flush waits until all that the writer has taken is
// delivered.
//
// An error is a *WriteError that matches ErrRejected: the point was not taken, for one of the reasons of Repository.Put,
// or ErrWriterClosed, or what the writer's Admit says, or ctx's error. With a journal it matches ErrUnknown where ctx ends during the sync.
func (s *Sink[T]) Enqueue(ctx context.Context, e Entity, t time.Time, v T) error {
	p, err := s.prepare(ctx, s.point(e, t, v), nil)
	if err != nil {
		return rejected(err).err()
	}
	return s.writer.take(ctx, p, false)
}

// TryEnqueue is Enqueue without the wait: while the buffer is full it returns an error that matches ErrBufferFull.
func (s *Sink[T]) TryEnqueue(ctx context.Context, e Entity, t time.Time, v T) error {
	p, err := s.prepare(ctx, s.point(e, t, v), nil)
	if err != nil {
		return rejected(err).err()
	}
	return s.writer.take(ctx, p, true)
}

// EnqueueFunc is Enqueue, and calls told exactly once with what became of the point: stored, rejected or unknown, or with a
// journal, as soon as the point is on disk, Journaled. Go by the outcome's Err to acknowledge a message, as it is nil both
// where the point is stored and where it will be. Where EnqueueFunc returns an error, told has been called with it, on the
// caller's goroutine; otherwise told is called later, on one goroutine of the writer for all points, one after the other. A
// slow told holds up the others and, once the buffer is full, those who put; it must not call Enqueue, Flush or Close of the
// same writer.
func (s *Sink[T]) EnqueueFunc(ctx context.Context, e Entity, t time.Time, v T, told func(Outcome)) error {
	if told == nil {
		return rejected(invalid.New(ErrInvalid, "told", "nil", "a function")).err()
	}
	p, err := s.prepare(ctx, s.point(e, t, v), caller(told))
	if err == nil {
		err = s.writer.offer(ctx, p)
	}
	if err != nil {
		out := rejected(err)
		told(out)
		return out.err()
	}
	return nil
}

// EnqueueMany hands points to the writer as Enqueue does, waits until all of them have ended, and returns one outcome for each, in
// order; the error is nil where all are stored, or in the writer's journal, and else a *BatchError. A point that cannot be
// stored does not hinder the others. Where ctx ends before that, the points that have not ended are unknown, with ctx's error: the writer goes on with
// those that it has taken.
//
// It takes up to Linger longer than Repository.PutMany, and shares its requests with everybody else's points.
func (s *Sink[T]) EnqueueMany(ctx context.Context, points []Point[T]) ([]Outcome, error) {
	g := gathering{outcomes: make([]Outcome, len(points)), left: len(points), done: make(chan struct{})}
	if len(points) == 0 {
		return g.outcomes, nil
	}
	for i, pt := range points {
		c := caller(func(o Outcome) { g.tell(i, o) })
		p, err := s.prepare(ctx, pt, c)
		if err == nil {
			err = s.writer.offer(ctx, p)
		}
		if err != nil {
			c(rejected(err))
		}
	}
	outcomes := g.wait(ctx)
	return outcomes, batchError(outcomes)
}

// caller is a function that is told how a write ended.
type caller func(Outcome)

// callerOf returns told as a caller; none where it is nil.
func callerOf(told func(Outcome)) journal.Caller {
	if told == nil {
		return nil
	}
	return caller(told)
}

// Ended implements journal.Caller.
func (c caller) Ended(o bt.Outcome) { c(outcomeOf(o)) }

// gathering collects the outcomes of one call.
type gathering struct {
	mu       sync.Mutex
	outcomes []Outcome
	left     int
	gone     bool // nobody waits any longer
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

// prepare checks a point and makes it ready for the writer.
func (s *Sink[T]) prepare(ctx context.Context, point Point[T], c journal.Caller) (*delivery.Pending, error) {
	if s == nil {
		return nil, invalid.New(ErrInvalid, "sink", "nil", "one from Repository.Via")
	}
	if err := s.repo.allowed(ctx); err != nil {
		return nil, err
	}
	if err := s.repo.store.core.Erased.AdmitCached(ctx, s.repo.rows.Tenant); err != nil {
		return nil, err
	}
	if err := s.writer.admit(); err != nil {
		return nil, err
	}
	if s.writer.store != s.repo.store {
		return nil, invalid.New(ErrInvalid, "writer", "one of another store", "a writer of the repository's store")
	}
	d := &s.repo.schema.d
	w, err := s.repo.encode(s.repo.store.core.DatasetForCheck(d, s.repo.rows.Tenant), point, s.repo.store.core.Clock())
	if err != nil {
		return nil, err
	}
	w.D = d // the class is that of when it is sent
	p := delivery.NewPoint(s.repo.rows.Tenant, w, c)
	if admit := s.writer.opts.Admit; admit != nil {
		if err := admit(ctx, s.repo.rows.Tenant, p.Item.Bytes); err != nil {
			return nil, err
		}
	}
	if err := s.repo.rows.CountWrite(point.Entity.path, &p.Write); err != nil {
		return nil, err
	}
	return p, nil
}
