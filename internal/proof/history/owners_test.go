package history

import "context"

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
	for ctx.Err() == nil && !d.writeOne(ctx, c, e, slot, kind) {
	}
}
