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

// TryAdd is Add in mode ByStream, but does not wait for room: if the journal is full, the error matches
// tsdb.ErrBufferFull.
func (a *Adder[T]) TryAdd(ctx context.Context, e tsdb.Entity, t time.Time, v T) error {
	return a.enqueue(ctx, e, t, v, true, nil)
}

// AddFunc is Add in mode ByStream, but does not wait for the disk. It calls done exactly once: with tsdb.Journaled
// when the event is in the journal, or with the reason why it never will be. If AddFunc returns an error, it has
// already called done on the caller's goroutine. Otherwise one goroutine of the writer calls done later. done must
// not call the writer.
func (a *Adder[T]) AddFunc(ctx context.Context, e tsdb.Entity, t time.Time, v T, done func(tsdb.Outcome)) error {
	if done == nil {
		return errorOf(rejected(invalid.New(tsdb.ErrInvalid, "done", "nil", "a function")))
	}
	return a.enqueue(ctx, e, t, v, false, done)
}

// enqueueMany is AddMany in mode ByStream.
func (a *Adder[T]) enqueueMany(ctx context.Context, events []tsdb.Point[T]) ([]tsdb.Outcome, error) {
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
		_ = a.enqueue(ctx, ev.Entity, ev.Time, ev.Value, false, done)
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

func (a *Adder[T]) enqueue(ctx context.Context, e tsdb.Entity, t time.Time, v T, try bool, done func(tsdb.Outcome)) error {
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

func (a *Adder[T]) prepare(ctx context.Context, e tsdb.Entity, t time.Time, v T) (inside.Event, error) {
	if a == nil {
		return inside.Event{}, invalid.New(tsdb.ErrInvalid, "adder", "nil", "an adder from NewAdder")
	}
	in, u, err := a.open(ctx, ByStream)
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
