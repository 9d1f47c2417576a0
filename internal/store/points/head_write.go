package points

import (
	"bytes"
	"context"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/store/dataset"
)

// SendHeads brings conditional writes that are stored, by this call or an earlier one, to their heads, all of an entity in
// one entry, and makes outs the outcomes of both together. With once it makes one attempt.
func (s *Table) SendHeads(ctx context.Context, rows *bt.Table, writes []*Write, outs []bt.Outcome, once bool) {
	var heads, settling []*Write
	var index, settled []int
	for i, w := range writes {
		if w.Head == "" || w.HeadOnly || outs[i].State != bt.Stored {
			continue
		}
		head := *w
		head.HeadOnly = true
		if w.settles() {
			settling, settled = append(settling, &head), append(settled, i)
		} else {
			heads, index = append(heads, &head), append(index, i)
		}
	}
	if settling != nil {
		rows.ByRow(ctx, len(settling), InsertWidth, func(i int) string { return settling[i].Key }, func(ctx context.Context, n int) {
			if err := s.settleMerged(ctx, rows.SingleCluster(), settling[n], once); err != nil {
				outs[settled[n]] = combineOutcomes(outs[settled[n]], bt.Outcome{State: bt.Unknown, Attempts: 1, Err: err})
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

// settles reports whether the head follows what the point's row holds, and not what is written: it may be merged with what was
// there, or be there in another class.
func (w *Write) settles() bool { return w.D.Merge || w.D.FirstWins && w.D.Choices != nil }

// settleMerged brings a point to its head that was merged from several writes: as it is by now, others may be at it too.
func (s *Table) settleMerged(ctx context.Context, rows *bt.Table, w *Write, once bool) error {
	h := w.D.Visibility(s.Clock())
	points, err := changed(ctx, rows, h, []dataset.Stored{{Key: w.Key, Cell: w.Cell}})
	if err != nil {
		return err
	}
	return repair(ctx, rows, h, w.Head, points, once)
}

// bulk writes entries in bulk. With once it makes one attempt at one request, whose limits the caller has kept to.
func bulk(ctx context.Context, rows *bt.Table, entries []bt.Entry, once bool) []bt.Outcome {
	switch {
	case !once && len(entries) == 1 && entries[0].Mutation != nil:
		return []bt.Outcome{rows.Apply(ctx, entries[0].Key, entries[0].Mutation)}
	case !once:
		return rows.Bulk(ctx, entries)
	}
	outs := make([]bt.Outcome, len(entries))
	for i, a := range rows.Attempt(ctx, entries) {
		var tr bt.Tracker
		tr.Note(a.Err, a.Doubt)
		outs[i] = tr.Outcome()
	}
	return outs
}

// headInsertion is insertion in a dataset that has heads only. What stands in the way is a version of that very time.
func (s *Table) headInsertion(w *Write) bt.Insertion {
	return bt.Insertion{
		Key:      w.Head,
		Exists:   func() bigtable.Filter { return w.D.Visibility(s.Clock()).VersionFilter(w.Cell) },
		Mutation: headEntry([]*Write{w}).Mutation,
		Mine: func(row bigtable.Row) bool {
			found := w.D.Visibility(s.Clock()).Versions(nil, row, 1)
			return len(found) == 1 && found[0].Item.Column == w.D.HeadColumns[0].Name && bytes.Equal(found[0].Item.Value, w.Payload)
		},
	}
}
