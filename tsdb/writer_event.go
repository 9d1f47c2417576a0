package tsdb

import (
	"context"

	"github.com/tidemark-go/tidemark/internal/ingest/delivery"
	"github.com/tidemark-go/tidemark/internal/inside"
	"github.com/tidemark-go/tidemark/internal/invalid"
)

// add enqueues a rollup event in the writer's journal, for package rollup. If done is nil, it waits until the event is in the
// journal; otherwise it calls done with the outcome.
func (w *Writer) add(ctx context.Context, ev inside.Event, done func(Outcome)) error {
	p, err := w.prepareEvent(ctx, ev, done)
	out := rejected(err)
	if err == nil {
		out = w.take(ctx, p, ev.Try)
	}
	return out.refusal(done)
}

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
	if admit := w.opts.Admit; admit != nil {
		if err := admit(ctx, ev.Tenant, p.Item.Bytes); err != nil {
			return nil, err
		}
	}
	return p, nil
}
