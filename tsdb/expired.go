package tsdb

import (
	"slices"

	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/ingest/buffer"
)

// unexpired ends the points that have expired while they waited, in the classes that they are about to be written in, and
// returns the others: what could not be seen must not be told to be stored.
func (d delivery) unexpired(items []*buffer.Item) []*buffer.Item {
	now := d.store.core.Time.Earliest() // what is told to be expired is not delivered any more
	expired := func(it *buffer.Item) error {
		p := of(it)
		if p.event != nil {
			return nil
		}
		return p.write.D.CheckExpired(p.write.Cell, now)
	}
	if !slices.ContainsFunc(items, func(it *buffer.Item) bool { return expired(it) != nil }) {
		return items // as nearly always
	}
	var rest []*buffer.Item
	for _, it := range items {
		if err := expired(it); err != nil {
			it.Track.Add(bt.Outcome{State: bt.Rejected, Err: err})
			continue
		}
		rest = append(rest, it)
	}
	return rest
}
