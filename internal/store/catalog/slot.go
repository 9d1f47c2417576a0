package catalog

import "math"

// A row of a rollup, and one of its marks, holds the span of time that its key's time starts. A slot is what one mark stands
// for: the step of time that starts at a multiple of the step. It belongs to the row in whose span it starts.

// Row returns the start of the row that holds the bucket which starts at a time. Both are in milliseconds since 1970.
func (r *Rollup) Row(start int64) int64 { return start / r.Span * r.Span }

// Slot returns which mark a time has: the start of its row, and its number in it.
func (r *Rollup) Slot(ms int64) (row, slot int64) {
	start := ms / r.Step * r.Step
	row = r.Row(start)
	return row, (start - row) / r.Step
}

// SlotStart returns the first millisecond of a slot of a row; the slot ends a step later. It is the inverse of Slot.
func (r *Rollup) SlotStart(row, slot int64) int64 {
	return (row+r.Step-1)/r.Step*r.Step + slot*r.Step
}

// stampEvery is the step, in milliseconds, of the stamps of a slot that has ended.
const stampEvery = 60_000

// MarkStamp returns the timestamp, in milliseconds, of a mark of a slot that is attempted at the time now. It is later than now,
// so that a worker that takes marks of a certain age takes none too early: the end of the slot while that lies ahead, as its
// buckets are not computed before, and otherwise the next whole minute. So a slot has one version of its mark until it ends,
// and one for each minute afterwards, however often it is marked: a worker reads all versions until Bigtable collects them.
func (r *Rollup) MarkStamp(row, slot, now int64) int64 {
	now = max(0, now)
	if end := r.SlotStart(row, slot) + r.Step; end > now && end <= math.MaxInt64/1000 { // what a cell can have
		return end
	}
	return (now/stampEvery + 1) * stampEvery
}
