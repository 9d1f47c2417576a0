package tsdb

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/invalid"
)

// maxPayload is the size up to which Bigtable wants a cell; it refuses 100 MiB.
const maxPayload = 10 << 20

// insertWidth is how many conditional writes of one call are under way at once.
const insertWidth = 16

// write is a point that is ready to be sent. It knows nothing of the point's type, so that writes of all schemas and
// tenants can go together.
type write struct {
	d       *dataset
	key     string
	cell    bigtable.Timestamp
	payload []byte
}

// prepare checks a point against every limit and turns it into its row.
func (r *Repository[T]) prepare(e Entity, t time.Time, v T, now time.Time) (write, error) {
	if err := r.space.CheckPath(e.path); err != nil {
		return write{}, err
	}
	units, err := r.schema.arrival(t, now)
	if err != nil {
		return write{}, err
	}
	payload, err := codec.Append(r.schema.codec, nil, v)
	if err != nil {
		return write{}, err
	}
	if limit := r.schema.maxPayload(); len(payload) > limit {
		return write{}, invalid.New(ErrInvalid, "payload", fmt.Sprintf("%d bytes", len(payload)), fmt.Sprintf("at most %d bytes", limit))
	}
	return write{
		d:       &r.schema.dataset,
		key:     r.key(e, units),
		cell:    bigtable.Timestamp(r.schema.precision.CellMicros(units)),
		payload: payload,
	}, nil
}

// conditional reports whether the write depends on what its row holds, and so cannot go in bulk.
func (w *write) conditional() bool { return w.d.firstWins || w.d.merge }

// entry returns the write as an entry of a bulk request.
func (w *write) entry() bt.Entry {
	m, n := w.d.write(w.cell, w.payload)
	return bt.Entry{Key: w.key, Mutation: m, Mutations: n, Bytes: len(w.payload)}
}

// send makes one write.
func (s *Store) send(ctx context.Context, w *write) Outcome {
	switch {
	case w.d.merge:
		return s.outcome(s.table.Merge(ctx, s.merging(w)))
	case w.conditional():
		return s.inserted(s.table.Insert(ctx, s.insertion(w, true)))
	}
	m, _ := w.d.write(w.cell, w.payload)
	return s.outcome(s.table.Apply(ctx, w.key, m))
}

// sendMany makes writes of one dataset, and returns what became of each, in order.
func (s *Store) sendMany(ctx context.Context, writes []*write) []Outcome {
	outcomes := make([]Outcome, len(writes))
	switch {
	case len(writes) == 0:
	case writes[0].d.merge:
		merges := make([]bt.Merging, len(writes))
		for i, w := range writes {
			merges[i] = s.merging(w)
		}
		for i, out := range s.table.MergeMany(ctx, merges, insertWidth) {
			outcomes[i] = s.outcome(out)
		}
	case writes[0].conditional():
		ins := make([]bt.Insertion, len(writes))
		for i, w := range writes {
			ins[i] = s.insertion(w, true)
		}
		found, outs := s.table.InsertMany(ctx, ins, insertWidth)
		for i := range outcomes {
			outcomes[i] = s.inserted(found[i], outs[i])
		}
	default:
		entries := make([]bt.Entry, len(writes))
		for i, w := range writes {
			entries[i] = w.entry()
		}
		for i, out := range s.table.Bulk(ctx, entries) {
			outcomes[i] = s.outcome(out)
		}
	}
	return outcomes
}

// insertion returns the conditional write of w. With tell it can tell an equal point from another one.
func (s *Store) insertion(w *write, tell bool) bt.Insertion {
	return bt.Insertion{
		Key:      w.key,
		Exists:   func() bigtable.Filter { return w.d.horizon(s.clock()).filter() },
		Mutation: w.entry().Mutation,
		Tell:     tell,
		Final:    w.d.firstWins,
		Mine: func(row bigtable.Row) bool {
			item, _, err := w.d.horizon(s.clock()).payload(row, w.cell)
			return err == nil && item != nil && item.Column == w.d.columns[0].name && bytes.Equal(item.Value, w.payload)
		},
	}
}

// inserted turns what became of a conditional write into an Outcome.
func (s *Store) inserted(found bt.Inserted, out bt.Outcome) Outcome {
	if out.State == bt.Stored && found == bt.Other {
		return Outcome{State: Rejected, Attempts: out.Attempts, Err: ErrExists}
	}
	return s.outcome(out)
}
