package tsdb

import (
	"context"
	"errors"
	"slices"

	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/ingest/buffer"
)

// classed gives each item the class that its tenant is in now. It reports false where nothing can be sent, as the classes
// cannot be read; the report then says what that means.
func (d delivery) classed(ctx context.Context, items []*buffer.Item, r *buffer.Report) bool {
	if !slices.ContainsFunc(items, chooses) {
		return true
	}
	a, err := d.store.core.Classes.Get(ctx)
	if err != nil {
		again := d.judge(r, err, 1)
		for _, it := range items {
			it.Again = again || d.keep || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
			it.Track.Add(bt.Outcome{State: bt.Rejected, Err: err})
		}
		return false
	}
	for _, it := range items {
		if chooses(it) {
			w := &of(it).write
			w.D = a.DatasetFor(it.Tenant, w.D)
		}
	}
	return true
}

// chooses reports whether an item is a point of a dataset with classes to choose from.
func chooses(it *buffer.Item) bool {
	p := of(it)
	return p.event == nil && p.write.D.Choices != nil
}
