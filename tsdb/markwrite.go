package tsdb

import (
	"context"
	"fmt"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/internal/bt"
)

// sendMarks marks the rollups of conditional writes once they are stored, by this call or an earlier one, and makes outs the
// outcomes of both together. With once it makes one attempt.
func (s *Store) sendMarks(ctx context.Context, writes []*write, outs []bt.Outcome, once bool) {
	m := marks{now: s.clock}
	var rows []int32
	of := make([]span32, 0, len(writes))
	for i, w := range writes {
		from := int32(len(rows))
		if w.d.marked > 0 && !w.apart && outs[i].State != bt.Rejected {
			rows = m.add(rows, w.d, w.key, w.cell)
		}
		of = append(of, span32{from: from, to: int32(len(rows))})
	}
	if len(rows) == 0 {
		return
	}
	answers := s.bulk(ctx, m.entries(), once)
	for i := range writes {
		for _, n := range rows[of[i].from:of[i].to] {
			outs[i] = marked(outs[i], answers[n])
		}
	}
}

// entries returns the rows as entries of bulk requests, in their order.
func (m *marks) entries() []bt.Entry {
	out := make([]bt.Entry, len(m.rows))
	for i, r := range m.rows {
		out[i] = r.bulk()
	}
	return out
}

// erased is a point that is deleted.
type erased struct {
	key  string
	cell bigtable.Timestamp
}

// erase deletes one point and marks it, in one request. Repeating it puts right what failed.
func (s *Store) erase(ctx context.Context, d *dataset, p erased) bt.Outcome {
	if d.marked == 0 {
		return s.table.Apply(ctx, p.key, deletion())
	}
	m := marks{now: s.clock}
	m.add(nil, d, p.key, p.cell)
	answers := s.table.Bulk(ctx, append([]bt.Entry{{Key: p.key, Mutation: deletion(), Mutations: 1}}, m.entries()...))
	out := answers[0]
	for _, mark := range answers[1:] {
		out = marked(out, mark)
	}
	return out
}

// eraseMany deletes points that were found in the table. They are marked first, and those whose marks fail are left: who
// repeats a deletion does not find again, and so could not mark, what is gone already. Where all that took so long that a
// worker may have taken the marks before the points were gone, they are marked again.
func (s *Store) eraseMany(ctx context.Context, d *dataset, points []erased) []bt.Outcome {
	m := marks{now: s.clock}
	of := make([]span32, len(points))
	var rows []int32
	if d.marked > 0 {
		for i, p := range points {
			from := int32(len(rows))
			rows = m.add(rows, d, p.key, p.cell)
			of[i] = span32{from: from, to: int32(len(rows))}
		}
	}
	began := s.clock()
	outs := make([]bt.Outcome, len(points))
	left := markOutcomes(outs, of, rows, s.table.Bulk(ctx, m.entries()))
	entries, index := make([]bt.Entry, 0, len(points)), make([]int, 0, len(points))
	for i, p := range points {
		if !left[i] {
			entries, index = append(entries, bt.Entry{Key: p.key, Mutation: deletion(), Mutations: 1}), append(index, i)
		}
	}
	for n, out := range s.table.Bulk(ctx, entries) {
		outs[index[n]] = out
	}
	if len(m.rows) > 0 && s.clock().Sub(began) > s.table.Timeouts().Write {
		again := s.table.Bulk(ctx, m.entries())
		for i := range points {
			for _, n := range rows[of[i].from:of[i].to] {
				outs[i] = marked(outs[i], again[n])
			}
		}
	}
	return outs
}

// markOutcomes reports, by point, which must be left as they could not be marked, and sets what became of those.
func markOutcomes(outs []bt.Outcome, of []span32, rows []int32, answers []bt.Outcome) (left []bool) {
	left = make([]bool, len(outs))
	for i := range outs {
		for _, n := range rows[of[i].from:of[i].to] {
			if a := answers[n]; a.State != bt.Stored {
				left[i] = true
				outs[i] = bt.Outcome{State: bt.Rejected, Attempts: a.Attempts, Err: fmt.Errorf("tsdb: the mark for the point's rollups is not known to be written: %w", a.Err)}
			}
		}
	}
	return left
}
