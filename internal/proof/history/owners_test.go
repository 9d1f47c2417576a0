package history

import (
	"context"
	"time"

	"github.com/tidemark-go/tidemark/tsdb"
)

// owned reports whether only the owner of a point writes it.
func (d *points[T]) owned() bool { return d.head || d.fields }

// headOf returns the part of an entity's head.
func headOf(points part) part {
	points.row = headRow
	return points
}

// ownSlots returns the owner of a point's entity counted from its own, and the last slot up to which it owns it.
func (d *points[T]) ownSlots(slot int) (entity, last int) {
	if slot < d.split {
		return 0, d.split - 1
	}
	return min(d.split, 1), slots - 1
}

// writeOwn writes or deletes points that the client owns until the outcome is known.
func (d *points[T]) writeOwn(ctx context.Context, c *client, slot int) {
	if c.id >= numEntities {
		return
	}
	of, _ := d.ownSlots(slot)
	e, kind := entityAt((c.id+of)%numEntities), []int{0, 0, 70, 85}[c.rnd.IntN(4)]
	if d.fields && !d.head && c.rnd.IntN(4) == 0 { // a batch leaves only its newest points in a head
		for ctx.Err() == nil && !d.writeSeries(ctx, c, e, slot) {
		}
		return
	}
	if kind >= 70 && d.split > 0 {
		d.meet(c, e)
	}
	for ctx.Err() == nil && !d.writeOne(ctx, c, e, slot, kind) {
	}
}

// meet waits a little until the other owner of an entity deletes points, too. Then both do it, one of them a little
// later.
func (d *points[T]) meet(c *client, e tsdb.Entity) {
	select {
	case d.meeting[e] <- struct{}{}:
	case <-d.meeting[e]:
	case <-time.After(60 * time.Millisecond):
		return
	}
	time.Sleep(time.Duration(c.rnd.IntN(20)) * time.Millisecond)
}
