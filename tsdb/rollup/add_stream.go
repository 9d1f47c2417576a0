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

// StreamAdder adds events to a rollup of mode ByStream through a writer with a journal. Stream makes one. It holds no
// resources and is safe for concurrent use.
type StreamAdder[T any] struct {
	adder[T]
	writer *tsdb.Writer
}

// Stream returns what adds events to a rollup of mode ByStream, for the tenant of a repository, through a writer of the same
// store that has a journal. It does no I/O and cannot fail: what is wrong with them is reported by each call.
//
// The journal gives each event a number, and a row knows up to which number it holds the journal, so that each event counts
// exactly once, whatever answers are lost and however often the program is killed. Events of a row that wait go together, in
// one conditional write. What the service refuses becomes a dead letter of the journal. A copy of a journal's folder that is
// brought back after the original went on would give numbers again that rows have seen: its events would not count. Begin a
// new folder then.
func NewStreamAdder[T any](r *Rollup[T], repo *tsdb.Repository[T], w *tsdb.Writer) *StreamAdder[T] {
	return &StreamAdder[T]{adder: adder[T]{rollup: r, repo: repo, mode: ByStream}, writer: w}
}

// Add adds an event at a time to the bucket of an entity. It waits until the event is in the journal, so that nil says that
// it will count, once. That is a sync for each Add of a loop: a loop is many times faster with AddFunc or AddMany.
//
// An error is a *tsdb.WriteError that matches tsdb.ErrRejected: the event was not taken, for one of the reasons of
// OnceAdder.Add, or tsdb.ErrWriterClosed, or what the writer's Admit says, or ctx's error; ErrInvalid for a writer without
// a journal. It matches tsdb.ErrUnknown where ctx ends during the sync.
func (a *StreamAdder[T]) Add(ctx context.Context, e tsdb.Entity, t time.Time, v T) error {
	return a.add(ctx, e, t, v, false, nil)
}

// TryAdd is Add without the wait for room: while the journal is full it returns an error that matches tsdb.ErrBufferFull.
func (a *StreamAdder[T]) TryAdd(ctx context.Context, e tsdb.Entity, t time.Time, v T) error {
	return a.add(ctx, e, t, v, true, nil)
}

// AddFunc is Add without the wait for the disk: told is called exactly once, as soon as the event is in the journal
// (tsdb.Journaled) or will not be. Where AddFunc returns an error, told has been called with it, on the caller's goroutine;
// otherwise it is called later, on one goroutine of the writer. It must not call back into the writer.
func (a *StreamAdder[T]) AddFunc(ctx context.Context, e tsdb.Entity, t time.Time, v T, told func(tsdb.Outcome)) error {
	if told == nil {
		return errorOf(rejected(invalid.New(ErrInvalid, "told", "nil", "a function")))
	}
	return a.add(ctx, e, t, v, false, told)
}

// AddMany adds events and waits until each is in the journal, or will not be. It returns what became of each, in order; the
// error is nil where all are in the journal, and else a *tsdb.BatchError. Where ctx ends before that, the events that have
// not ended are unknown.
func (a *StreamAdder[T]) AddMany(ctx context.Context, events []tsdb.Point[T]) ([]tsdb.Outcome, error) {
	var mu sync.Mutex
	outcomes := make([]tsdb.Outcome, len(events))
	left, gone, done := len(events), false, make(chan struct{})
	if left == 0 {
		return outcomes, nil
	}
	for i, ev := range events {
		told := func(o tsdb.Outcome) {
			mu.Lock()
			defer mu.Unlock()
			if gone {
				return
			}
			outcomes[i] = o
			if left--; left == 0 {
				close(done)
			}
		}
		_ = a.add(ctx, ev.Entity, ev.Time, ev.Value, false, told) // told knows
	}
	select {
	case <-done:
	case <-ctx.Done():
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

func (a *StreamAdder[T]) add(ctx context.Context, e tsdb.Entity, t time.Time, v T, try bool, told func(tsdb.Outcome)) error {
	ev, err := a.prepare(ctx, e, t, v)
	if err != nil {
		out := rejected(err)
		if told != nil {
			told(out)
		}
		return errorOf(out)
	}
	ev.Try = try
	return inside.Add(ctx, a.writer, ev, told)
}

func (a *StreamAdder[T]) prepare(ctx context.Context, e tsdb.Entity, t time.Time, v T) (inside.Event, error) {
	if a == nil {
		return inside.Event{}, invalid.New(ErrInvalid, "adder", "nil", "one from Stream")
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
		Table: in.Store.Table, Tenant: a.repo.Tenant(), Dataset: in.Dataset, Fields: in.Fields, Salts: in.Salts,
		Rollup: &a.rollup.entry, Path: p.path, Event: p.event,
	}, nil
}
