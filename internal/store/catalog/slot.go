package catalog

import "math"

// A row of a rollup, and a row of its marks, covers one span of time, from the time in its key on. A slot is the time
// range of one mark: it has the length of the step and starts at a multiple of it. It belongs to the row in whose span
// it starts.

// Row returns the start of the row that holds the bucket with the given start. Both are in milliseconds since 1970.
func (r *Rollup) Row(start int64) int64 { return start / r.Span * r.Span }

// Slot returns the mark for a time: the start of its row, and its number in the row.
func (r *Rollup) Slot(ms int64) (row, slot int64) {
	start := ms / r.Step * r.Step
	row = r.Row(start)
	return row, (start - row) / r.Step
}

// SlotStart returns the first millisecond of a slot of a row; the slot ends a step later. It is the inverse of Slot.
func (r *Rollup) SlotStart(row, slot int64) int64 {
	return (row+r.Step-1)/r.Step*r.Step + slot*r.Step
}

// stampEvery is the step, in milliseconds, of the timestamps of marks of a slot that has ended.
const stampEvery = 60_000

// MarkStamp returns the timestamp, in milliseconds, of a slot's mark that is written at the time now. It is later than
// now, so that a worker that takes marks of a certain age never takes one too early. It is the end of the slot if that
// is in the future, because the slot's buckets are not computed before, and otherwise the next whole minute. So a slot
// has one version of its mark until it ends, and at most one for each minute afterwards, however often it is marked: a
// worker reads all versions until Bigtable collects them.
func (r *Rollup) MarkStamp(row, slot, now int64) int64 {
	now = max(0, now)
	if end := r.SlotStart(row, slot) + r.Step; end > now && end <= math.MaxInt64/1000 { // the largest timestamp of a cell
		return end
	}
	return (now/stampEvery + 1) * stampEvery
}
