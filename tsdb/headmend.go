package tsdb

import (
	"bytes"
	"context"
	"slices"
	"strings"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/internal/bt"
)

// cell is a payload as it is stored, in its class and qualifier, whichever row it stands in.
type cell struct {
	class     int
	qualifier string
	value     []byte
}

// stored is a point as it is stored: its payloads at its time, in the order of classes and qualifiers. Without any it is
// not there.
type stored struct {
	key   string // of the point's row
	cell  bigtable.Timestamp
	cells []cell
}

func (s stored) equal(o stored) bool {
	return slices.EqualFunc(s.cells, o.cells, func(a, b cell) bool {
		return a.class == b.class && a.qualifier == b.qualifier && bytes.Equal(a.value, b.value)
	})
}

// stored returns the visible payloads at one time in a row, with classes as its families.
func (h horizon) stored(row bigtable.Row, classes []class, key string, at bigtable.Timestamp) stored {
	s := stored{key: key, cell: at}
	for i := range classes {
		if at < h.cutoff(i) {
			continue
		}
		for _, item := range row[classes[i].Name] {
			qualifier := strings.TrimPrefix(item.Column, classes[i].Name+":")
			if item.Timestamp == at && strings.HasPrefix(qualifier, slot) {
				s.cells = append(s.cells, cell{class: i, qualifier: qualifier, value: item.Value})
			}
		}
	}
	return s
}

// mend brings an entity's newest points to its head, after points up to that time were deleted from both.
func (r *Repository[T]) mend(ctx context.Context, e Entity, deleted int64) error {
	h := r.horizon()
	todo, err := r.missing(ctx, h, e, deleted)
	if err == nil {
		err = r.store.explain(settle(ctx, r.rows, h, r.headKey(e.path), todo, false))
	}
	if err != nil {
		return headError(e, err)
	}
	return nil
}

// missing returns those of an entity's newest points that its head lacks, or has otherwise. Where the head has as many as it
// keeps that are all newer than what was deleted, and that stay as long as any, none of its own was, and it is not compared.
//
// Points that stay longer than newer ones come to light when those expire, so where classes are mixed the newest of each
// class count.
func (r *Repository[T]) missing(ctx context.Context, h horizon, e Entity, deleted int64) ([]stored, error) {
	n := r.schema.d.head.Points
	head, err := r.rows.Row(ctx, r.headKey(e.path), h.headFilter(n))
	if err != nil {
		return nil, r.store.explain(err)
	}
	mixed := !h.d.ordered()
	have := h.versions(nil, head, n)
	for _, v := range have {
		mixed = mixed || v.rank >= len(h.d.tags)
	}
	if !mixed && len(have) == n && have[n-1].units > deleted {
		return nil, nil
	}
	var out []stored
	points := span{entity: e, newest: r.schema.d.precision.Max(), limit: n, raw: func(units int64, row bigtable.Row) {
		at := r.cellOf(units)
		p := h.stored(row, h.d.classes, row.Key(), at)
		mixed = mixed || len(p.cells) > 0 && p.cells[0].class > 0
		if len(p.cells) > 0 && !p.equal(h.stored(head, h.d.headClasses, "", at)) {
			out = append(out, p)
		}
	}}
	if err = r.scan(ctx, points, nil); err != nil || !mixed {
		return out, err
	}
	out = out[:0]
	for i := range h.d.classes {
		points.class = &i
		if err := r.scan(ctx, points, nil); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// settle brings points of one entity to its head, as they are stored. It looks at them again afterwards, until they are
// what their own rows say: a deletion meanwhile, whose part in the head was done before, would otherwise be undone here.
//
// It takes nothing from the head but what it has brought there: what has no row may be on its way to both. With once it
// makes one attempt at each write.
func settle(ctx context.Context, rows *bt.Table, h horizon, head string, points []stored, once bool) error {
	for len(points) > 0 {
		if out := bulk(ctx, rows, []bt.Entry{h.d.copies(head, points)}, once)[0]; out.State != bt.Stored {
			return out.Err
		}
		var err error
		if points, err = changed(ctx, rows, h, points); err != nil {
			return err
		}
	}
	return nil
}

// copies returns the entry that makes a head hold points as they are stored, and no payload where they are not.
func (d *dataset) copies(head string, points []stored) bt.Entry {
	m := newHeadMutation()
	for _, p := range points {
		m.clear(d.headColumns, p.cell, after(p.cell))
		for _, c := range p.cells {
			m.Set(d.headClasses[c.class].Name, c.qualifier, p.cell, c.value)
			m.count++
			m.bytes += len(c.value)
		}
	}
	return bt.Entry{Key: head, Mutation: m.Mutation, Mutations: m.count, Bytes: m.bytes}
}

// changed returns those of the points that are stored otherwise by now, as they are.
func changed(ctx context.Context, rows *bt.Table, h horizon, points []stored) ([]stored, error) {
	keys := make(bigtable.RowList, len(points))
	now := make([]stored, len(points))
	for i, p := range points {
		keys[i] = p.key
		now[i] = stored{key: p.key, cell: p.cell}
	}
	for row, err := range rows.Rows(ctx, bt.Scan{Rows: keys, Filter: h.filter()}) {
		if err != nil {
			return nil, err
		}
		i := slices.Index(keys, row.Key())
		if i < 0 {
			return nil, foreignRow(h.d)
		}
		now[i] = h.stored(row, h.d.classes, keys[i], points[i].cell)
	}
	var out []stored
	for i, p := range points {
		if !now[i].equal(p) {
			out = append(out, now[i])
		}
	}
	return out, nil
}
