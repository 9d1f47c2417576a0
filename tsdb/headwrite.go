package tsdb

import (
	"bytes"
	"context"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/store/dataset"
)

// sendHeads brings conditional writes that are stored, by this call or an earlier one, to their heads, all of an entity in
// one entry, and makes outs the outcomes of both together. With once it makes one attempt.
func (s *table) sendHeads(ctx context.Context, rows *bt.Table, writes []*write, outs []bt.Outcome, once bool) {
	var heads, settling []*write
	var index, settled []int
	for i, w := range writes {
		if w.head == "" || w.apart || outs[i].State != bt.Stored {
			continue
		}
		head := *w
		head.apart = true
		if w.settles() {
			settling, settled = append(settling, &head), append(settled, i)
		} else {
			heads, index = append(heads, &head), append(index, i)
		}
	}
	if settling != nil {
		rows.ByRow(ctx, len(settling), insertWidth, func(i int) string { return settling[i].key }, func(ctx context.Context, n int) {
			if err := s.settleMerged(ctx, rows.SingleCluster(), settling[n], once); err != nil {
				outs[settled[n]] = both(outs[settled[n]], bt.Outcome{State: bt.Unknown, Attempts: 1, Err: err})
			}
		})
	}
	if heads == nil {
		return
	}
	b := newBatch(heads, s.Clock)
	for n, out := range b.outcomes(bulk(ctx, rows, b.entries, once)) {
		outs[index[n]] = both(outs[index[n]], out)
	}
}

// settles reports whether the head follows what the point's row holds, and not what is written: it may be merged with what was
// there, or be there in another class.
func (w *write) settles() bool { return w.d.Merge || w.d.FirstWins && w.d.Choices != nil }

// settleMerged brings a point to its head that was merged from several writes: as it is by now, others may be at it too.
func (s *table) settleMerged(ctx context.Context, rows *bt.Table, w *write, once bool) error {
	h := w.d.Visibility(s.Clock())
	points, err := changed(ctx, rows, h, []dataset.Stored{{Key: w.key, Cell: w.cell}})
	if err != nil {
		return err
	}
	return settle(ctx, rows, h, w.head, points, once)
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
func (s *table) headInsertion(w *write) bt.Insertion {
	return bt.Insertion{
		Key:      w.head,
		Exists:   func() bigtable.Filter { return w.d.Visibility(s.Clock()).VersionFilter(w.cell) },
		Mutation: headEntry([]*write{w}).Mutation,
		Mine: func(row bigtable.Row) bool {
			found := w.d.Visibility(s.Clock()).Versions(nil, row, 1)
			return len(found) == 1 && found[0].Item.Column == w.d.HeadColumns[0].Name && bytes.Equal(found[0].Item.Value, w.payload)
		},
	}
}
