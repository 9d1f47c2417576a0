package tsdb

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"time"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/store/dataset"
	"github.com/tidemark-go/tidemark/internal/store/rowkey"
)

// insertWidth is how many conditional writes of one call are under way at once.
const insertWidth = 16

// write is a point that is ready to be sent. It knows nothing of the point's type, so that writes of all schemas and
// tenants can go together.
type write struct {
	d       *dataset.Dataset
	key     string // of the point's row
	head    string // of the head's row; "" where there are none
	apart   bool   // the head alone is written: there are no rows of points, or this one is written already
	cell    bigtable.Timestamp
	payload []byte
	doubt   bool // the answer to an attempt of a writer was lost
}

// prepare checks a point that is about to be written, all but its payload, and returns its time in units of the precision. The
// point is written by d: the dataset in the class that the tenant is in.
func (r *rows) prepare(d *dataset.Dataset, path, id string, t, now time.Time) (units int64, err error) {
	if err := r.space.CheckPath(path); err != nil {
		return 0, err
	}
	if err := r.space.CheckID(id); err != nil {
		return 0, err
	}
	if err := d.CheckKeys(path); err != nil {
		return 0, err
	}
	if units, err = d.CheckArrival(t, now); err != nil {
		return 0, err
	}
	return units, r.Erased.AdmitEntity(r.tenant, d.Name, path)
}

// newWrite returns the write of a point that prepare has checked. It refuses a payload that is too large.
func (r *rows) newWrite(d *dataset.Dataset, path string, units int64, id string, payload []byte) (write, error) {
	if limit := d.MaxPayload(); len(payload) > limit {
		return write{}, invalid.New(ErrInvalid, "payload", fmt.Sprintf("%d bytes", len(payload)), fmt.Sprintf("at most %d bytes", limit))
	}
	return newWrite(d, r.space, r.heads, path, units, id, payload), nil
}

// newWrite returns the write of a point of an entity at a time, and with an ID, which were checked, in the spaces of points and heads.
func newWrite(d *dataset.Dataset, points, heads rowkey.Space, path string, units int64, id string, payload []byte) write {
	var buf [256]byte
	w := write{
		d:       d,
		key:     string(points.AppendEvent(buf[:0], path, units, id)),
		cell:    bigtable.Timestamp(d.Precision.CellMicros(units)),
		payload: payload,
	}
	if d.Head.Points > 0 {
		w.head, w.apart = string(heads.AppendEntity(buf[:0], path)), d.Head.Only
	}
	return w
}

// conditional reports whether the write depends on what its row holds, and so cannot go in bulk.
func (w *write) conditional() bool { return w.d.FirstWins || w.d.Merge }

// marks reports whether the write marks rollups.
func (w *write) marks() bool { return w.d.Marked > 0 && !w.apart }

// entry returns the write as an entry of a bulk request.
func (w *write) entry() bt.Entry {
	m, n := w.d.Mutation(w.cell, w.payload)
	return bt.Entry{Key: w.key, Mutation: m, Mutations: n, Bytes: len(w.payload)}
}

// send makes one write in the rows of its tenant.
func (s *table) send(ctx context.Context, rows *bt.Table, w *write) bt.Outcome {
	if w.head != "" || w.d.Marked > 0 {
		return s.sendMany(ctx, rows, []*write{w})[0]
	}
	if w.conditional() {
		return s.explained(s.sendOne(ctx, rows, w, false))
	}
	m, _ := w.d.Mutation(w.cell, w.payload)
	return s.explained(rows.Apply(ctx, w.key, m))
}

// sendMany makes writes of one dataset and tenant, and returns what became of each, in order.
func (s *table) sendMany(ctx context.Context, rows *bt.Table, writes []*write) (outs []bt.Outcome) {
	switch {
	case len(writes) == 0:
		return nil
	case writes[0].conditional():
		outs = s.sendAlone(ctx, rows, writes, false)
	default:
		b := newBatch(writes, s.Clock)
		outs = b.outcomes(rows.Bulk(ctx, b.entries))
	}
	for i, out := range outs {
		outs[i] = s.explained(out)
	}
	return outs
}

// explained returns the outcome with what Explain adds to its error.
func (s *table) explained(o bt.Outcome) bt.Outcome {
	o.Err = s.Explain(o.Err)
	return o
}

// sendAlone makes conditional writes side by side, those of one row in their order, and then brings them to their heads.
// With once each is attempted once.
func (s *table) sendAlone(ctx context.Context, rows *bt.Table, writes []*write, once bool) []bt.Outcome {
	ctx, cancel := rows.Bound(ctx, true)
	defer cancel()
	outs := make([]bt.Outcome, len(writes))
	together := len(writes)
	if slices.ContainsFunc(writes, (*write).marks) {
		together = insertWidth // no write waits behind its marks until they are old
	}
	for from := 0; from < len(writes); from += together {
		part, outs := writes[from:min(from+together, len(writes))], outs[from:]
		s.sendMarked(ctx, rows, part, outs, once, func(ctx context.Context, i int) {
			outs[i] = s.sendOne(ctx, rows, part[i], once)
		})
	}
	s.sendHeads(ctx, rows, writes, outs, once)
	return outs
}

// sendOne makes one conditional write, without its head.
func (s *table) sendOne(ctx context.Context, rows *bt.Table, w *write, once bool) bt.Outcome {
	if w.d.Merge {
		m := s.merging(w)
		m.Once, m.Doubt = once, w.doubt
		return rows.Merge(ctx, m)
	}
	in := s.insertion(w)
	in.Once = once
	found, out := rows.Insert(ctx, in)
	if out.State == bt.Stored && found == bt.Other {
		return bt.Outcome{State: bt.Rejected, Attempts: out.Attempts, Err: ErrExists}
	}
	return out
}

// insertion returns the conditional write of w.
func (s *table) insertion(w *write) bt.Insertion {
	if w.apart {
		return s.headInsertion(w)
	}
	return bt.Insertion{
		Key:      w.key,
		Exists:   func() bigtable.Filter { return w.d.Visibility(s.Clock()).Filter() },
		Mutation: w.entry().Mutation,
		Final:    w.d.FirstWins,
		Mine: func(row bigtable.Row) bool {
			item, _, err := w.d.Visibility(s.Clock()).Payload(row, w.cell)
			return err == nil && item != nil && w.mine(item) && bytes.Equal(item.Value, w.payload)
		},
	}
}
