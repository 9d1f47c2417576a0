package points

import (
	"context"
	"slices"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/store/dataset"
)

// repairHead writes an entity's newest points to its head, after points between two times were deleted from both.
func (r *Rows) repairHead(ctx context.Context, path string, oldest, newest int64) error {
	var err error
	if r.D.Head.Points > 0 {
		h := r.Visibility().WithoutFields()
		var todo []dataset.Stored
		if todo, err = r.missingInHead(ctx, h, path, oldest, newest); err == nil {
			err = r.Explain(repair(ctx, r.View, h, r.headKey(path), todo, false))
		}
	}
	if err == nil && r.D.Head.Fields {
		gone := noPoint
		if oldest == newest {
			gone = r.cellOf(newest)
		}
		err = r.repairFields(ctx, path, gone)
	}
	if err != nil {
		return headError(path, err)
	}
	return nil
}

// missingInHead returns the newest points of an entity that its head lacks or holds in another state. If a head is full
// of points that are all newer than the deleted ones and of the same class, it lacks none, and the points are not read.
// If classes have different retention, a point can become one of the newest when newer ones expire. So the newest
// points of each class count. It first removes deleted points whose tags this program does not know.
func (r *Rows) missingInHead(ctx context.Context, h dataset.Visibility, path string, oldest, deleted int64) ([]dataset.Stored, error) {
	n := r.D.Head.Points
	head, err := r.View.Row(ctx, r.headKey(path), h.HeadFilter(n))
	if err != nil {
		return nil, r.Explain(err)
	}
	unread := func(v dataset.Version) bool { return v.Rank >= len(h.D.Tags) }
	have := h.Versions(nil, head, n)
	if slices.ContainsFunc(have, unread) {
		if err = r.clearUnread(ctx, path, oldest, deleted); err != nil {
			return nil, err
		}
		if head, err = r.View.Row(ctx, r.headKey(path), h.HeadFilter(n)); err != nil {
			return nil, r.Explain(err)
		}
		have = h.Versions(nil, head, n)
	}
	mixed := !h.D.Ordered() || slices.ContainsFunc(have, unread)
	if !mixed && len(have) == n && have[n-1].Units > deleted {
		return nil, nil
	}
	var out []dataset.Stored
	points := Span{Path: path, Newest: r.D.Precision.Max(), Limit: n}
	visit := func(f *Found) bool {
		at := r.cellOf(f.Units)
		p := h.Stored(f.row, h.D.Classes, f.row.Key(), at)
		mixed = mixed || len(p.Cells) > 0 && p.Cells[0].Class > 0
		if len(p.Cells) > 0 && !p.Equal(h.Stored(head, h.D.HeadClasses, "", at)) {
			out = append(out, p)
		}
		return true
	}
	if err = r.Scan(ctx, points, visit); err != nil || !mixed {
		return out, err
	}
	out = out[:0]
	for i := range h.D.Classes {
		points.class = &i
		if err := r.Scan(ctx, points, visit); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// clearUnread removes the points of a head between two times whose tags this program does not know, also those that a
// read of the newest ones does not show.
func (r *Rows) clearUnread(ctx context.Context, path string, oldest, newest int64) error {
	row, err := r.versions(ctx, path, oldest, newest)
	if err != nil {
		return err
	}
	m := dataset.NewHeadMutation()
	if m.ClearUnread(r.D, row, oldest, newest); m.Count == 0 {
		return nil
	}
	return r.Explained(r.View.Apply(ctx, r.headKey(path), m.Mutation)).Err
}

// repair copies stored points of one entity to its head. It then reads their rows again, and repeats until both agree:
// otherwise it could restore a point that was deleted meanwhile. It removes from the head only what it has written
// there: a version without a row may belong to a write that is still running. If once is set, it makes one attempt at
// each write.
func repair(ctx context.Context, rows *bt.Table, h dataset.Visibility, head string, points []dataset.Stored, once bool) error {
	for len(points) > 0 {
		if m := h.D.Copies(points); m.Count > 0 { // else no point has fields
			if out := bulk(ctx, rows, []bt.Entry{headEntryOf(head, m)}, once)[0]; out.State != bt.Stored {
				return out.Err
			}
		}
		var err error
		if points, err = changed(ctx, rows, h, points); err != nil {
			return err
		}
	}
	return nil
}

// changed returns, in their current state, the points whose rows have changed.
func changed(ctx context.Context, rows *bt.Table, h dataset.Visibility, points []dataset.Stored) ([]dataset.Stored, error) {
	keys := make(bigtable.RowList, len(points))
	now := make([]dataset.Stored, len(points))
	for i, p := range points {
		keys[i] = p.Key
		now[i] = dataset.Stored{Key: p.Key, Cell: p.Cell}
	}
	for row, err := range rows.Rows(ctx, bt.Scan{Rows: keys, Filter: h.Filter()}) {
		if err != nil {
			return nil, err
		}
		i := slices.Index(keys, row.Key())
		if i < 0 {
			return nil, ForeignRow(h.D)
		}
		now[i] = h.Stored(row, h.D.Classes, keys[i], points[i].Cell)
	}
	var out []dataset.Stored
	for i, p := range points {
		if !now[i].Equal(p) {
			now[i].Had = h.D.FieldsHad(p)
			out = append(out, now[i])
		}
	}
	return out, nil
}

// headEntryOf returns a mutation of a head as an entry of a bulk request.
func headEntryOf(head string, m dataset.HeadMutation) bt.Entry {
	return bt.Entry{Key: head, Mutation: m.Mutation, Mutations: m.Count, Bytes: m.Bytes}
}
