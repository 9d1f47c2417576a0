package rollup

import (
	"context"
	"sync"
	"time"

	"github.com/tidemark-go/tidemark/internal/ctxerr"
	"github.com/tidemark-go/tidemark/internal/inside"
	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/tsdb"
)

// StreamAdder adds events to a rollup of mode ByStream through a writer with a journal. NewStreamAdder makes one. It
// holds no resources and is safe for concurrent use.
type StreamAdder[T any] struct {
	adder[T]
	writer *tsdb.Writer
}

// NewStreamAdder returns an adder for the tenant of a repository. The writer must have a journal and belong to the
// same store. NewStreamAdder does no I/O and cannot fail: each call reports what is wrong with its arguments.
//
// The journal numbers the events, and each row stores the highest number it contains of each journal. So each event
// counts exactly once, through lost responses and crashes. Waiting events of a row are sent together in one
// conditional write. An event that the service refuses becomes a dead letter of the journal.
//
// Do not restore a copy of a journal's folder after the original has delivered more events. The copy would use
// numbers that rows have already seen, and its events would not count. Use a new folder.
func NewStreamAdder[T any](r *Rollup[T], repo *tsdb.Repository[T], w *tsdb.Writer) *StreamAdder[T] {
	return &StreamAdder[T]{adder: adder[T]{rollup: r, repo: repo, mode: ByStream}, writer: w}
}

// Add adds an event to the bucket of an entity at a time. It waits until the event is in the journal, so nil means
// that the event will count, exactly once. Each Add waits for a sync of the disk: in a loop, AddFunc and AddMany are
// many times faster.
//
// An error is a *tsdb.WriteError. It matches tsdb.ErrRejected if the journal did not accept the event. Reasons are
// those of OnceAdder.Add, tsdb.ErrWriterClosed, an error of the writer's Admit, ctx's error, and ErrInvalid for a
// writer without a journal. It matches tsdb.ErrUnknown if ctx ends during the sync.
func (a *StreamAdder[T]) Add(ctx context.Context, e tsdb.Entity, t time.Time, v T) error {
	return a.add(ctx, e, t, v, false, nil)
}

// TryAdd is Add, but does not wait for room: if the journal is full, the error matches tsdb.ErrBufferFull.
func (a *StreamAdder[T]) TryAdd(ctx context.Context, e tsdb.Entity, t time.Time, v T) error {
	return a.add(ctx, e, t, v, true, nil)
}

// AddFunc is Add, but does not wait for the disk. It calls done exactly once: with tsdb.Journaled when the event is
// in the journal, or with the reason why it never will be. If AddFunc returns an error, it has already called done on
// the caller's goroutine. Otherwise one goroutine of the writer calls done later. done must not call the writer.
func (a *StreamAdder[T]) AddFunc(ctx context.Context, e tsdb.Entity, t time.Time, v T, done func(tsdb.Outcome)) error {
	if done == nil {
		return errorOf(rejected(invalid.New(ErrInvalid, "done", "nil", "a function")))
	}
	return a.add(ctx, e, t, v, false, done)
}

// AddMany adds events and waits until each is in the journal or has failed. It returns the outcome of each, in order.
// The error is nil if all are in the journal, else a *tsdb.BatchError. If ctx ends first, the outcome of the
// remaining events is tsdb.Unknown.
func (a *StreamAdder[T]) AddMany(ctx context.Context, events []tsdb.Point[T]) ([]tsdb.Outcome, error) {
	var mu sync.Mutex
	outcomes := make([]tsdb.Outcome, len(events))
	left, gone, all := len(events), false, make(chan struct{})
	if left == 0 {
		return outcomes, nil
	}
	for i, ev := range events {
		done := func(o tsdb.Outcome) {
			mu.Lock()
			defer mu.Unlock()
			if gone {
				return
			}
			outcomes[i] = o
			if left--; left == 0 {
				close(all)
			}
		}
		_ = a.add(ctx, ev.Entity, ev.Time, ev.Value, false, done)
	}
	select {
	case <-all:
	case <-ctxerr.Given(ctx).Done():
	}
	mu.Lock()
	defer mu.Unlock()
	gone = true
	for i := range outcomes {
		if outcomes[i].State == 0 {
			outcomes[i] = tsdb.Outcome{State: tsdb.Unknown, Err: ctxerr.Of(ctx)}
		}
	}
	return outcomes, batchError(outcomes)
}

func (a *StreamAdder[T]) add(ctx context.Context, e tsdb.Entity, t time.Time, v T, try bool, done func(tsdb.Outcome)) error {
	ev, err := a.prepare(ctx, e, t, v)
	if err != nil {
		out := rejected(err)
		if done != nil {
			done(out)
		}
		return errorOf(out)
	}
	ev.Try = try
	return inside.Of(a.writer).Add(ctx, ev, done)
}

func (a *StreamAdder[T]) prepare(ctx context.Context, e tsdb.Entity, t time.Time, v T) (inside.Event, error) {
	if a == nil {
		return inside.Event{}, invalid.New(ErrInvalid, "adder", "nil", "an adder from NewStreamAdder")
	}
	in, u, err := a.open(ctx)
	if err != nil {
		return inside.Event{}, err
	}
	p, err := a.place(in, u, e, t, v)
	if err != nil {
		return inside.Event{}, err
	}
	return inside.Event{
		Table: in.Whole, Tenant: a.repo.Tenant(), Dataset: in.D.Name, Fields: in.D.Fields, Salts: in.D.Salts,
		Rollup: &a.rollup.entry, Path: p.path, Event: p.event,
	}, nil
}
