package rollup

import (
	"context"
	"time"

	"github.com/tidemark-go/tidemark/internal/inside"
	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/tsdb"
)

// AddFunc is Add in mode ByStream, but does not wait for the disk. It calls done exactly once: with tsdb.Journaled
// when the event is in the journal, or with the reason why it never will be. If AddFunc returns an error, it has
// already called done on the caller's goroutine. Otherwise one goroutine of the writer calls done later. done must
// not call the writer.
func (a *Adder[T]) AddFunc(ctx context.Context, e tsdb.Entity, t time.Time, v T, done func(tsdb.Outcome)) error {
	if done == nil {
		return errorOf(rejected(invalid.New(tsdb.ErrInvalid, "done", "nil", "a function")))
	}
	return a.enqueue(ctx, e, t, v, done)
}

// enqueueMany is AddMany in mode ByStream.
func (a *Adder[T]) enqueueMany(ctx context.Context, events []tsdb.Point[T]) ([]tsdb.Outcome, error) {
	return inside.Of(a.writer).Gather(ctx, len(events), func(i int, done func(tsdb.Outcome)) error {
		ev := &events[i]
		return a.enqueue(ctx, ev.Entity, ev.Time, ev.Value, done)
	})
}

func (a *Adder[T]) enqueue(ctx context.Context, e tsdb.Entity, t time.Time, v T, done func(tsdb.Outcome)) error {
	if a == nil {
		a = new(Adder[T])
	}
	event := func() (inside.Event, error) { return a.prepare(ctx, e, t, v) }
	return inside.Of(a.writer).Add(ctx, event, done)
}

func (a *Adder[T]) prepare(ctx context.Context, e tsdb.Entity, t time.Time, v T) (inside.Event, error) {
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
