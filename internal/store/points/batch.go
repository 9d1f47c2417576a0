package points

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/store/dataset"
)

// Batch holds writes as the entries of one bulk request: the row of each point and, after the last write of an entity,
// one entry for its head; after the last write of a row of dirty marks, one entry for that row.
type Batch struct {
	Entries []bt.Entry
	of      []rowsOf // by write
	marks   dirtyMarks
	marked  []int32 // indexes of the rows of marks of all writes
}

// rowsOf are the indexes of one write's entries; -1 means none.
type rowsOf struct {
	point, head int
	marks       span32 // in marked
}

// span32 is a part of a slice.
type span32 struct{ from, to int32 }

// NewBatch returns the entries of writes of any datasets and tenants. now gives the time in dirty marks.
func NewBatch(writes []*Write, now func() time.Time) Batch {
	b := Batch{Entries: make([]bt.Entry, 0, len(writes)), of: make([]rowsOf, len(writes)), marks: dirtyMarks{now: now}}
	b.mark(writes)
	var heads map[string]*headGroup
	for _, w := range writes {
		if w.Head == "" {
			continue
		}
		g := heads[w.Head]
		if g == nil {
			if heads == nil {
				heads = make(map[string]*headGroup)
			}
			g = &headGroup{}
			heads[w.Head] = g
		}
		g.writes = append(g.writes, w)
	}
	for i, w := range writes {
		b.of[i].point, b.of[i].head = -1, -1
		if !w.HeadOnly {
			b.of[i].point = len(b.Entries)
			b.Entries = append(b.Entries, w.entry())
		}
		b.passMarks(i)
		if w.Head == "" {
			continue
		}
		g := heads[w.Head]
		if g.passed++; g.passed == len(g.writes) {
			g.entry = len(b.Entries)
			b.Entries = append(b.Entries, headEntry(g.writes))
		}
	}
	for i, w := range writes {
		if w.Head != "" {
			b.of[i].head = heads[w.Head].entry
		}
	}
	return b
}

// mark collects the dirty marks of all writes.
func (b *Batch) mark(writes []*Write) {
	for i, w := range writes {
		if !w.marks() {
			continue
		}
		if b.marked == nil {
			b.marked = make([]int32, 0, len(writes)*w.D.Marked)
		}
		from := int32(len(b.marked))
		b.marked = b.marks.add(b.marked, w.D, w.Key, w.Cell)
		b.of[i].marks = span32{from: from, to: int32(len(b.marked))}
	}
}

// passMarks adds the entries of the rows of marks that have the write at an index as their last one.
func (b *Batch) passMarks(i int) {
	for _, n := range b.marksOf(i) {
		row := b.marks.rows[n]
		if row.users--; row.users == 0 {
			row.entry = len(b.Entries)
			b.Entries = append(b.Entries, row.bulk())
		}
	}
}

// marksOf returns the indexes of the rows of marks of the write at an index.
func (b *Batch) marksOf(i int) []int32 {
	s := b.of[i].marks
	return b.marked[s.from:s.to]
}

// headGroup holds the writes of a batch to one head.
type headGroup struct {
	writes []*Write
	passed int
	entry  int
}

// outcomes returns the outcome of each write, from the outcomes of the entries.
func (b *Batch) outcomes(entries []bt.Outcome) []bt.Outcome {
	outs := make([]bt.Outcome, len(b.of))
	for i, rows := range b.of {
		switch {
		case rows.head < 0:
			outs[i] = entries[rows.point]
		case rows.point < 0:
			outs[i] = entries[rows.head]
		default:
			outs[i] = combineOutcomes(entries[rows.point], entries[rows.head])
		}
		for _, n := range b.marksOf(i) {
			outs[i] = withMark(outs[i], entries[b.marks.rows[n].entry])
		}
	}
	return outs
}

// Answer returns the result of an attempt at the write at an index, from the results of its entries. Another attempt
// may succeed if no row was refused permanently.
func (b *Batch) Answer(i int, answers []bt.Answer) bt.Answer {
	a := b.answerRows(i, answers)
	for _, n := range b.marksOf(i) {
		a = answerWithMark(a, answers[b.marks.rows[n].entry])
	}
	return a
}

func (b *Batch) answerRows(i int, answers []bt.Answer) bt.Answer {
	rows := b.of[i]
	switch {
	case rows.head < 0:
		return answers[rows.point]
	case rows.point < 0:
		return answers[rows.head]
	}
	point, head := answers[rows.point], answers[rows.head]
	a := bt.Answer{Err: point.Err, MaybeApplied: point.MaybeApplied || head.MaybeApplied, Whole: point.Whole && head.Whole}
	switch {
	case point.Err == nil && head.Err == nil:
		return a
	case point.Err == nil:
		a.Err, a.MaybeApplied = fmt.Errorf("tsdb: the point's row is written, its head is not: %w", head.Err), true
	case head.Err == nil:
		a.Err, a.MaybeApplied = fmt.Errorf("tsdb: the point's head is written, its row is not: %w", point.Err), true
	}
	a.Again = (point.Err == nil || point.Again) && (head.Err == nil || head.Again)
	return a
}

// Size returns the approximate number of bytes of the write in a request.
func (w *Write) Size() int {
	n := len(w.Key) + len(w.Payload)
	if w.Head != "" {
		n += len(w.Head) + len(w.Payload) + w.D.FieldBytes(len(w.Payload))
	}
	return n + w.D.Marked*(len(w.Key)+2*markBytes)
}

// Mutations returns the largest number of mutations of the write.
func (w *Write) Mutations() int {
	return len(w.D.Columns) + 2*len(w.D.HeadColumns) + w.D.FieldMutations() + w.D.Marked
}

// headEntry returns the entry that writes points of one entity to its head. It holds the newest points, at most as many
// as a head keeps; of two points at the same time it holds the last. If it leaves out points, it also clears all older
// versions of the head: a version at the time of an omitted point would be outdated.
func headEntry(writes []*Write) bt.Entry {
	d := writes[len(writes)-1].D
	m := dataset.NewHeadMutation()
	newest := writes
	if len(writes) > 1 {
		newest = slices.Clone(writes)
		slices.Reverse(newest)
		slices.SortStableFunc(newest, func(a, b *Write) int { return cmp.Compare(b.Cell, a.Cell) })
		newest = slices.CompactFunc(newest, func(a, b *Write) bool { return a.Cell == b.Cell })
	}
	if d.Head.Fields {
		m.SetFields(fieldPoints(newest))
	}
	if n := d.Head.Points; len(newest) > n {
		newest = newest[:n]
		if n > 0 {
			m.Clear(d.HeadColumns, 0, newest[n-1].Cell)
		}
	}
	for _, w := range newest {
		m.SetPoint(w.D, w.Cell, w.Payload)
	}
	return headEntryOf(writes[0].Head, m)
}

// fieldPoints returns writes as points whose fields are written.
func fieldPoints(writes []*Write) []dataset.FieldPoint {
	out := make([]dataset.FieldPoint, len(writes))
	for i, w := range writes {
		out[i] = dataset.FieldPoint{D: w.D, Cell: w.Cell, Payload: w.Payload}
	}
	return out
}

// combineOutcomes returns the outcome of a write of two rows. It is certain only if both outcomes are certain and
// equal.
func combineOutcomes(point, head bt.Outcome) bt.Outcome {
	o := bt.Outcome{State: bt.Unknown, Attempts: max(point.Attempts, head.Attempts), Err: point.Err}
	switch {
	case point.State == bt.Stored && head.State == bt.Stored:
		o.State = bt.Stored
	case point.State == bt.Rejected && head.State == bt.Rejected:
		o.State = bt.Rejected
	case point.State == bt.Stored:
		o.Err = fmt.Errorf("tsdb: the point's row is written, its head is not known to be: %w", head.Err)
	case head.State == bt.Stored:
		o.Err = fmt.Errorf("tsdb: the point's head is written, its row is not known to be: %w", point.Err)
	case point.State == bt.Rejected:
		o.Err = head.Err
	}
	return o
}
