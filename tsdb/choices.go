package tsdb

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/ingest/buffer"
	"github.com/tidemark-go/tidemark/internal/store/dataset"
)

// writing returns the dataset that writes the tenant's points now.
func (r *rows) writing(ctx context.Context) (*dataset.Dataset, error) {
	d := r.d
	if d.Choices == nil {
		return d, nil
	}
	if a := r.Classes.Fresh(); a != nil {
		return a.DatasetFor(r.tenant.String(), d), nil
	}
	ctx, cancel := context.WithTimeout(ctx, r.bt.Timeouts().Write)
	defer cancel()
	a, err := r.Classes.Get(ctx)
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, fmt.Errorf("tsdb: read the retention classes of tenants: %w", err)
	case err != nil:
		return nil, err
	}
	return a.DatasetFor(r.tenant.String(), d), nil
}

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
			w := &it.Work.(*pending).write
			w.d = a.DatasetFor(it.Tenant, w.d)
		}
	}
	return true
}

// chooses reports whether an item is a point of a dataset with classes to choose from.
func chooses(it *buffer.Item) bool {
	p := it.Work.(*pending)
	return p.event == nil && p.write.d.Choices != nil
}

// mine reports whether a payload that is equal to the one that w writes is taken for w's own. One in another class lives for
// another time, and so is another, unless the tenant was in that class: who writes a first-wins point again after the tenant
// has changed class, as a journal may, is not to find another's in the way.
func (w *write) mine(item *bigtable.ReadItem) bool {
	if item.Column == w.d.Columns[0].Name {
		return true
	}
	if !w.d.FirstWins || w.d.Choices == nil {
		return false
	}
	base := w.d.Choices[""]
	i := base.ColumnOf(item.Column)
	if i < 0 || base.Columns[i].Tag != 0 {
		return false
	}
	class := i / len(base.Tags)
	return class == 0 || base.Classes[class].Choice
}
