package points

import (
	"context"
	"fmt"
	"time"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/store/dataset"
	"github.com/tidemark-go/tidemark/internal/store/rowkey"
)

// SendMarked makes conditional writes: it calls send with the index of each, several at once, but one after another for
// writes of one row. It writes the dirty marks first, and does not send a write whose marks fail: if a program ended
// between a write and its mark, the rollup would stay wrong. Marks and writes share the timeout of writes, so no worker
// takes a mark before its point is stored. If everything took longer than that by the clock, SendMarked marks again.
// With once it makes one attempt at the marks.
func (s *Table) SendMarked(ctx context.Context, rows *bt.Table, writes []*Write, outs []bt.Outcome, once bool, send func(ctx context.Context, i int)) {
	m := dirtyMarks{now: s.Clock}
	of := make([][]int32, len(writes))
	var marked []int32 // of all writes
	for i, w := range writes {
		if w.marks() {
			from := len(marked)
			marked = m.add(marked, w.D, w.Key, w.Cell)
			of[i] = marked[from:len(marked):len(marked)]
		}
	}
	left, bounded := make([]bool, len(writes)), ctx
	began := s.Clock()
	if len(m.rows) > 0 {
		var cancel context.CancelFunc
		bounded, cancel = context.WithTimeout(ctx, rows.Timeouts().Write)
		defer cancel()
		left = markOutcomes(outs, of, bulk(bounded, rows, m.entries(), once))
	}
	rows.ByRow(bounded, len(writes), InsertWidth, func(i int) string { return writes[i].Key }, func(ctx context.Context, i int) {
		if !left[i] {
			send(ctx, i)
		}
	})
	if len(m.rows) > 0 && s.Clock().Sub(began) > rows.Timeouts().Write {
		withMarks(outs, of, bulk(ctx, rows, m.entries(), once))
	}
}

// entries returns the rows as entries of bulk requests, in order.
func (m *dirtyMarks) entries() []bt.Entry {
	out := make([]bt.Entry, len(m.rows))
	for i, r := range m.rows {
		out[i] = r.bulk()
	}
	return out
}

// MarksOf returns entries that mark points in the rollups that are computed from them, by the keys of the points' rows.
// It passes over keys of other rows.
func MarksOf(d *dataset.Dataset, space rowkey.Space, keys []string, now func() time.Time) []bt.Entry {
	m := dirtyMarks{now: now}
	for _, key := range keys {
		if _, units, ok := space.Split(key); ok {
			m.add(nil, d, key, bigtable.Timestamp(d.Precision.CellMicros(units)))
		}
	}
	return m.entries()
}

// Removal is a point to delete.
type Removal struct {
	key  string
	cell bigtable.Timestamp
}

// Delete deletes one point and marks it, in one request. If it fails, repeating it is safe and completes both.
func (r *Rows) Delete(ctx context.Context, p Removal) bt.Outcome {
	d := r.D
	if d.Marked == 0 {
		return r.View.Apply(ctx, p.key, r.deletion(d.Classes))
	}
	m := dirtyMarks{now: r.Clock}
	m.add(nil, d, p.key, p.cell)
	answers := r.View.Bulk(ctx, append([]bt.Entry{r.removing(p)}, m.entries()...))
	out := answers[0]
	for _, mark := range answers[1:] {
		out = withMark(out, mark)
	}
	return out
}

// removing returns the deletion of a point's row as an entry of a bulk request.
func (r *Rows) removing(p Removal) bt.Entry {
	classes := r.D.Classes
	return bt.Entry{Key: p.key, Mutation: r.deletion(classes), Mutations: len(classes)}
}

// removeMany deletes points that were found in the table. It marks them first, and does not delete points whose marks
// fail: a repeated deletion would not find deleted points again, so it could not mark them. If everything took so long
// that a worker may have taken the marks before the points were deleted, it marks them again.
func (r *Rows) removeMany(ctx context.Context, points []Removal) []bt.Outcome {
	m := dirtyMarks{now: r.Clock}
	of := make([][]int32, len(points))
	if r.D.Marked > 0 {
		var marked []int32 // of all points
		for i, p := range points {
			from := len(marked)
			marked = m.add(marked, r.D, p.key, p.cell)
			of[i] = marked[from:len(marked):len(marked)]
		}
	}
	began := r.Clock()
	outs := make([]bt.Outcome, len(points))
	left := markOutcomes(outs, of, r.View.Bulk(ctx, m.entries()))
	entries, index := make([]bt.Entry, 0, len(points)), make([]int, 0, len(points))
	for i, p := range points {
		if !left[i] {
			entries, index = append(entries, r.removing(p)), append(index, i)
		}
	}
	for n, out := range r.View.Bulk(ctx, entries) {
		outs[index[n]] = out
	}
	if len(m.rows) > 0 && r.Clock().Sub(began) > r.View.Timeouts().Write {
		withMarks(outs, of, r.View.Bulk(ctx, m.entries()))
	}
	return outs
}

// markOutcomes reports, for each point, whether it must be skipped because it could not be marked, and sets the
// outcomes of such points. The marks of point i are in the rows of marks of[i].
func markOutcomes(outs []bt.Outcome, of [][]int32, answers []bt.Outcome) (left []bool) {
	left = make([]bool, len(of))
	for i, rows := range of {
		for _, n := range rows {
			if a := answers[n]; a.State != bt.Stored {
				left[i] = true
				outs[i] = bt.Outcome{State: bt.Rejected, Attempts: a.Attempts, Err: fmt.Errorf("tsdb: the mark for the point's rollups is not known to be written: %w", a.Err)}
			}
		}
	}
	return left
}

// withMarks is withMark for all points and their marks.
func withMarks(outs []bt.Outcome, of [][]int32, answers []bt.Outcome) {
	for i, rows := range of {
		for _, n := range rows {
			outs[i] = withMark(outs[i], answers[n])
		}
	}
}
