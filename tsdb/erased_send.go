package tsdb

import (
	"context"
	"errors"

	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/ingest/buffer"
)

// unerased ends the items that write to erased tenants or entities, and returns the others. It reports false where nothing
// can be sent, as the marks cannot be read; the report then says what that means.
func (d delivery) unerased(ctx context.Context, items []*buffer.Item) (rest []*buffer.Item, r buffer.Report, ok bool) {
	m, err := d.store.core.Erased.Marks(ctx)
	if err != nil {
		again := d.judge(&r, err, 1)
		for _, it := range items {
			it.Again = again || d.keep || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
			it.Track.Add(bt.Outcome{State: bt.Rejected, Err: err})
		}
		return nil, r, false
	}
	if len(m.Tenants) == 0 {
		return items, r, true
	}
	now := d.store.core.Erased.Clock()
	for _, it := range items {
		if p := of(it); m.CoversWrite(p, p.generation, now) {
			it.Track.Add(bt.Outcome{State: bt.Rejected, Err: m.Refusal(p, now)})
			continue
		}
		rest = append(rest, it)
	}
	return rest, r, true
}
