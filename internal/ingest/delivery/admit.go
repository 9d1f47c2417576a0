package delivery

import (
	"context"
	"errors"
	"slices"

	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/ingest/buffer"
)

// dropErased ends the items that write to erased tenants or entities, and returns the others. It reports false where nothing
// can be sent, as the marks cannot be read; the report then says what that means.
func (d Sender) dropErased(ctx context.Context, items []*buffer.Item) (rest []*buffer.Item, r buffer.Report, ok bool) {
	m, err := d.Table.Erased.Marks(ctx)
	if err != nil {
		d.putOff(items, err, &r)
		return nil, r, false
	}
	if len(m.Tenants) == 0 {
		return items, r, true
	}
	now := d.Table.Erased.Clock()
	for _, it := range items {
		if p := Of(it); m.CoversWrite(p, p.Taken, now) {
			it.Track.Add(bt.Outcome{State: bt.Rejected, Err: m.Refusal(p, now)})
			continue
		}
		rest = append(rest, it)
	}
	return rest, r, true
}

// setClasses gives each item the class that its tenant is in now. It reports false where nothing can be sent, as the classes
// cannot be read; the report then says what that means.
func (d Sender) setClasses(ctx context.Context, items []*buffer.Item, r *buffer.Report) bool {
	if !slices.ContainsFunc(items, chooses) {
		return true
	}
	a, err := d.Table.Classes.Get(ctx)
	if err != nil {
		d.putOff(items, err, r)
		return false
	}
	for _, it := range items {
		if chooses(it) {
			w := &Of(it).Write
			w.D = a.DatasetFor(it.Tenant, w.D)
		}
	}
	return true
}

// chooses reports whether an item is a point of a dataset with classes to choose from.
func chooses(it *buffer.Item) bool {
	p := Of(it)
	return p.event == nil && p.Write.D.Choices != nil
}

// dropExpired ends the points that have expired while they waited, in the classes that they are about to be written in, and
// returns the others: what could not be seen must not be told to be stored.
func (d Sender) dropExpired(items []*buffer.Item) []*buffer.Item {
	now := d.Table.Time.Earliest() // what is told to be expired is not delivered any more
	expired := func(it *buffer.Item) error {
		p := Of(it)
		if p.event != nil {
			return nil
		}
		return p.Write.D.CheckExpired(p.Write.Cell, now)
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

// putOff ends an attempt before anything is sent, as what it depends on cannot be read. Items that may wait are sent again.
func (d Sender) putOff(items []*buffer.Item, err error, r *buffer.Report) {
	again := d.judge(r, err, 1) || d.durable() || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
	for _, it := range items {
		it.Again = again
		it.Track.Add(bt.Outcome{State: bt.Rejected, Err: err})
	}
}
