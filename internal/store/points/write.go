package points

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"time"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/readrows"
	"github.com/tidemark-go/tidemark/internal/store/dataset"
	"github.com/tidemark-go/tidemark/internal/store/lastvalue"
	"github.com/tidemark-go/tidemark/internal/store/rowkey"
)

// Write is a point that is ready to be sent. It is untyped, so that one batch can hold writes of all schemas and
// tenants.
type Write struct {
	D            *dataset.Dataset
	Entity       rowkey.ID
	Units        int64  // the time
	ID           string // in a dataset with Identity
	Key          string // the row key of the point
	Head         string // the row key of the head; "" without heads
	HeadOnly     bool   // write only the head: the dataset has no other rows, or the point's row is already written
	Cell         bigtable.Timestamp
	Payload      []byte
	MaybeApplied bool // a writer has lost the response to an earlier attempt

	merged []byte // what the row holds once the write is stored, if that is not Payload
}

// NewWrite returns the write of a point whose path, time and ID have been checked.
func NewWrite(d *dataset.Dataset, points, heads rowkey.Space, path string, units int64, id string, payload []byte) Write {
	var buf [256]byte
	w := Write{
		D:       d,
		Entity:  points.ID(path),
		Units:   units,
		ID:      id,
		Key:     string(points.AppendEvent(buf[:0], path, units, id)),
		Cell:    bigtable.Timestamp(d.Precision.CellMicros(units)),
		Payload: payload,
	}
	if d.Head.Any() {
		w.Head, w.HeadOnly = string(heads.AppendEntity(buf[:0], path)), d.Head.Only
	}
	return w
}

// isOwnWrite reports whether a stored payload that equals w's counts as written by w. Normally a payload in another
// class does not, because it expires at another time. It does if FirstWins is set and a tenant's profile can choose
// that class: a journal may write a point again after its tenant has changed class, and its own point must not make it
// fail.
func (w *Write) isOwnWrite(item *readrows.Cell) bool {
	if item.Column == w.D.Columns[0].Name {
		return true
	}
	if !w.D.FirstWins || w.D.Choices == nil {
		return false
	}
	base := w.D.Choices[""]
	i := base.ColumnOf(item.Column)
	if i < 0 || base.Columns[i].Tag != 0 {
		return false
	}
	class := i / len(base.Tags)
	return class == 0 || base.Classes[class].Choice
}

// InsertWidth is the maximum number of concurrent conditional writes of one call.
const InsertWidth = 16

// Prepare checks everything of a point except its payload, and returns its time in units of the precision. d is the
// dataset in the tenant's class.
func (r *Rows) Prepare(d *dataset.Dataset, path, id string, t, now time.Time) (units int64, err error) {
	if err := r.Space.CheckPath(path); err != nil {
		return 0, err
	}
	if err := r.Space.CheckID(id); err != nil {
		return 0, err
	}
	if err := d.CheckKeys(path); err != nil {
		return 0, err
	}
	if units, err = d.CheckArrival(t, now); err != nil {
		return 0, err
	}
	return units, r.Erased.AdmitEntity(r.Tenant, d.Name, path)
}

// NewWrite returns the write of a point that Prepare has checked. It refuses a payload that is too large.
func (r *Rows) NewWrite(d *dataset.Dataset, path string, units int64, id string, payload []byte) (Write, error) {
	if limit := d.MaxPayload(); len(payload) > limit {
		return Write{}, invalid.New(dataset.ErrInvalid, "payload", fmt.Sprintf("%d bytes", len(payload)), fmt.Sprintf("at most %d bytes", limit))
	}
	return NewWrite(d, r.Space, r.Heads, path, units, id, payload), nil
}

// Conditional reports whether the write depends on the content of its row. Such writes cannot be sent in bulk.
func (w *Write) Conditional() bool { return w.D.FirstWins || w.D.Merge }

// marks reports whether the write marks rollups.
func (w *Write) marks() bool { return w.D.Marked > 0 && !w.HeadOnly }

// entry returns the write as an entry of a bulk request.
func (w *Write) entry() bt.Entry {
	return bt.Entry{Key: w.Key, Direct: w, Mutations: len(w.D.Columns), Bytes: len(w.Payload)}
}

// AddTo implements bt.Mutations.
func (w *Write) AddTo(m bt.Mutator) { w.D.SetPayload(m, w.Cell, w.Payload) }

// Send makes one write in the rows of its tenant, and brings the cache up to date.
func (s *Table) Send(ctx context.Context, rows *bt.Table, w *Write) bt.Outcome {
	n := s.NewCacheWrite()
	n.Begin(w)
	out := s.send(ctx, rows, w)
	n.End(w, out.State)
	return out
}

func (s *Table) send(ctx context.Context, rows *bt.Table, w *Write) bt.Outcome {
	if w.Head != "" || w.D.Marked > 0 {
		return s.sendMany(ctx, rows, []*Write{w})[0]
	}
	if w.Conditional() {
		return s.Explained(s.sendOne(ctx, rows, w, false))
	}
	return s.Explained(rows.ApplyEntry(ctx, w.entry()))
}

// SendMany makes writes of one dataset and tenant, brings the cache up to date, and returns the outcomes in order.
func (s *Table) SendMany(ctx context.Context, rows *bt.Table, writes []*Write) []bt.Outcome {
	n := s.NewCacheWrite()
	for _, w := range writes {
		n.Begin(w)
	}
	outs := s.sendMany(ctx, rows, writes)
	for i, out := range outs {
		n.End(writes[i], out.State)
	}
	return outs
}

func (s *Table) sendMany(ctx context.Context, rows *bt.Table, writes []*Write) (outs []bt.Outcome) {
	switch {
	case len(writes) == 0:
		return nil
	case writes[0].Conditional():
		outs = s.SendAlone(ctx, rows, writes, false)
	default:
		b := NewBatch(writes, s.Clock)
		outs = b.outcomes(rows.Bulk(ctx, b.Entries))
	}
	for i, out := range outs {
		outs[i] = s.Explained(out)
	}
	return outs
}

// SendIfAbsent makes one write if no visible point exists, and reports what it found. It reads the point first.
func (r *Rows) SendIfAbsent(ctx context.Context, w *Write) (found bt.Inserted, out bt.Outcome) {
	// The head is written after its point, also if an earlier call failed to write the head.
	after := w.Head != "" && !w.HeadOnly
	n := r.NewCacheWrite()
	n.Begin(w)
	in := r.insertion(w)
	in.Look = true
	writes, outs := []*Write{w}, make([]bt.Outcome, 1)
	r.SendMarked(ctx, r.View, writes, outs, false, func(ctx context.Context, _ int) {
		found, outs[0] = r.View.Insert(ctx, in)
	})
	if after && found != bt.Other {
		r.SendHeads(ctx, r.View, writes, outs, false)
	}
	n.Inserted(w, found, outs[0].State)
	return found, r.Explained(outs[0])
}

// Explained returns the outcome with its error explained.
func (s *Table) Explained(o bt.Outcome) bt.Outcome {
	o.Err = s.Explain(o.Err)
	return o
}

// SendAlone makes conditional writes in parallel, those of one row in order, and then writes their heads. If once is
// set, it attempts each write once.
func (s *Table) SendAlone(ctx context.Context, rows *bt.Table, writes []*Write, once bool) []bt.Outcome {
	ctx, cancel := rows.Bound(ctx, true)
	defer cancel()
	outs := make([]bt.Outcome, len(writes))
	together := len(writes)
	if slices.ContainsFunc(writes, (*Write).marks) {
		together = InsertWidth // marks must be recent when their writes are sent
	}
	for from := 0; from < len(writes); from += together {
		part, outs := writes[from:min(from+together, len(writes))], outs[from:]
		s.SendMarked(ctx, rows, part, outs, once, func(ctx context.Context, i int) {
			outs[i] = s.sendOne(ctx, rows, part[i], once)
		})
	}
	s.SendHeads(ctx, rows, writes, outs, once)
	return outs
}

// sendOne makes one conditional write, without its head.
func (s *Table) sendOne(ctx context.Context, rows *bt.Table, w *Write, once bool) bt.Outcome {
	if w.D.Merge {
		m := s.merging(w)
		m.Once, m.MaybeApplied = once, w.MaybeApplied
		return rows.Merge(ctx, m)
	}
	in := s.insertion(w)
	in.Once = once
	found, out := rows.Insert(ctx, in)
	if out.State == bt.Stored && found == bt.Other {
		return bt.Outcome{State: bt.Rejected, Attempts: out.Attempts, Err: dataset.ErrExists}
	}
	return out
}

// insertion returns the conditional write of w.
func (s *Table) insertion(w *Write) bt.Insertion {
	if w.HeadOnly {
		return s.headInsertion(w)
	}
	m, _ := w.D.Mutation(w.Cell, w.Payload)
	return bt.Insertion{
		Key:      w.Key,
		Exists:   func() bigtable.Filter { return w.D.Visibility(s.Clock()).Filter() },
		Mutation: m,
		Final:    w.D.FirstWins,
		IsOwn: func(row *bt.Row) bool {
			item, _, err := w.D.Visibility(s.Clock()).Payload(row, w.Cell)
			return err == nil && item != nil && w.isOwnWrite(item) && bytes.Equal(item.Value, w.Payload)
		},
	}
}

// CacheWrite keeps the last-value cache correct during one call that writes points, passes stored points to followers,
// and notes the fields of points that are or may be stored. The call reports each point before its first request, and
// its result before the call returns an outcome.
type CacheWrite struct {
	table *Table
	cache *lastvalue.Cache // nil for none
	mark  *lastvalue.Mark
}

// NewCacheWrite begins a call that writes points.
func (s *Table) NewCacheWrite() CacheWrite {
	if s.Cache == nil {
		return CacheWrite{table: s}
	}
	return CacheWrite{table: s, cache: s.Cache, mark: new(lastvalue.Mark)}
}

// Begin records that a write is about to be sent.
func (n CacheWrite) Begin(w *Write) {
	if n.cache == nil || w.D.Identity { // the cache keeps no events
		return
	}
	n.cache.Begin(n.mark, w.Entity)
}

// End records the result of a write, or of one attempt at it.
func (n CacheWrite) End(w *Write, state bt.State) {
	if state != bt.Rejected {
		n.table.Fields.Note(w.Entity, w.D, w.Cell, w.Payload)
	}
	if state == bt.Stored {
		n.table.Feed.stored(w)
	}
	if n.cache == nil || w.D.Identity { // the cache keeps no events
		return
	}
	if w.Conditional() { // the row may hold another writer's point
		n.cache.Changed(w.Entity, w.D.Layout, w.Units)
		return
	}
	n.endAs(w, state)
}

// Inserted records the result of a write of PutIfAbsent.
func (n CacheWrite) Inserted(w *Write, found bt.Inserted, state bt.State) {
	if state != bt.Rejected && found != bt.Other {
		n.table.Fields.Note(w.Entity, w.D, w.Cell, w.Payload)
	}
	if state == bt.Stored && found != bt.Other {
		n.table.Feed.stored(w)
	}
	if n.cache == nil || w.D.Identity { // the cache keeps no events
		return
	}
	if state == bt.Stored && found != bt.Fresh {
		n.cache.Changed(w.Entity, w.D.Layout, w.Units)
		return
	}
	n.endAs(w, state)
}

func (n CacheWrite) endAs(w *Write, state bt.State) {
	switch state {
	case bt.Rejected:
	case bt.Stored:
		n.cache.Stored(n.mark, w.Entity, lastvalue.Written{Layout: w.D.Layout, Units: w.Units, Cell: w.Cell, Column: w.D.FirstColumn, Payload: w.Payload})
	default:
		n.cache.Changed(w.Entity, w.D.Layout, w.Units)
	}
}

// Attempted returns the state of a write after one attempt.
func Attempted(a bt.Answer) bt.State {
	switch {
	case a.Err == nil:
		return bt.Stored
	case a.MaybeApplied:
		return bt.Unknown
	}
	return bt.Rejected
}

// stored passes a stored point to its followers. If nobody follows, it costs one atomic load.
func (f *Feed) stored(w *Write) {
	if m := f.followers.Load(); m != nil {
		f.pass(*m, w)
	}
}
