package points

import (
	"bytes"
	"context"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/store/dataset"
)

// SendHeads writes the heads of stored conditional writes: one entry per entity. It combines the outcomes of both rows
// in outs. If once is set, it makes one attempt.
func (s *Table) SendHeads(ctx context.Context, rows *bt.Table, writes []*Write, outs []bt.Outcome, once bool) {
	var heads, copies []*Write
	var index, copied []int
	for i, w := range writes {
		if w.Head == "" || w.HeadOnly || outs[i].State != bt.Stored {
			continue
		}
		head := *w
		head.HeadOnly = true
		if w.copiesRow() {
			copies, copied = append(copies, &head), append(copied, i)
		} else {
			heads, index = append(heads, &head), append(index, i)
		}
	}
	if copies != nil {
		rows.ByRow(ctx, len(copies), InsertWidth, func(i int) string { return copies[i].Key }, func(ctx context.Context, n int) {
			if err := s.copyRow(ctx, rows.SingleCluster(), copies[n], once); err != nil {
				outs[copied[n]] = combineOutcomes(outs[copied[n]], bt.Outcome{State: bt.Unknown, Attempts: 1, Err: err})
			}
		})
	}
	if heads == nil {
		return
	}
	b := NewBatch(heads, s.Clock)
	for n, out := range b.outcomes(bulk(ctx, rows, b.Entries, once)) {
		outs[index[n]] = combineOutcomes(outs[index[n]], out)
	}
}

// copiesRow reports whether the head must be copied from the point's row instead of from w: the row may hold a merged
// payload, or one in another class.
func (w *Write) copiesRow() bool { return w.D.Merge || w.D.FirstWins && w.D.Choices != nil }

// copyRow copies a point from its row to its head. Other writers may change it at the same time.
func (s *Table) copyRow(ctx context.Context, rows *bt.Table, w *Write, once bool) error {
	h := w.D.Visibility(s.Clock())
	points, err := changed(ctx, rows, h, []dataset.Stored{{Key: w.Key, Cell: w.Cell}})
	if err != nil {
		return err
	}
	return repair(ctx, rows, h, w.Head, points, once)
}

// bulk writes entries in bulk. If once is set, it makes one attempt in one request; the caller respects the limits of a
// request.
func bulk(ctx context.Context, rows *bt.Table, entries []bt.Entry, once bool) []bt.Outcome {
	switch {
	case !once && len(entries) == 1 && entries[0].Mutation != nil:
		return []bt.Outcome{rows.Apply(ctx, entries[0].Key, entries[0].Mutation)}
	case !once:
		return rows.Bulk(ctx, entries)
	}
	outs := make([]bt.Outcome, len(entries))
	for i, a := range rows.Attempt(ctx, entries, nil) {
		var tr bt.Tracker
		tr.Note(a.Err, a.MaybeApplied)
		outs[i] = tr.Outcome()
	}
	return outs
}

// headInsertion is insertion in a dataset that keeps heads only. The point exists if the head has a version of its
// time.
func (s *Table) headInsertion(w *Write) bt.Insertion {
	return bt.Insertion{
		Key:      w.Head,
		Exists:   func() bigtable.Filter { return w.D.Visibility(s.Clock()).VersionFilter(w.Cell) },
		Mutation: headEntry([]*Write{w}).Mutation,
		IsOwn: func(row *bt.Row) bool {
			found := w.D.Visibility(s.Clock()).Versions(nil, row, 1)
			return len(found) == 1 && found[0].Item.Column == w.D.HeadColumns[0].Name && bytes.Equal(found[0].Item.Value, w.Payload)
		},
	}
}
