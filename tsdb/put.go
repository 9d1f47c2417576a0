package tsdb

import (
	"context"
	"time"

	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/store/dataset"
	"github.com/tidemark-go/tidemark/internal/store/points"
	"github.com/tidemark-go/tidemark/internal/telemetry"
)

// Put stores one point, in a schema with Identity the one with the ID of WithID. Storing it again replaces its value, so a Put may be repeated. It costs one request, for two rows
// in a schema with heads.
//
// In a schema with FirstWins it stores the point only where none is visible yet: a repeated Put whose payload is equal byte
// for byte is stored too, another is rejected with ErrExists. It then costs one conditional request, and a read where a
// point is there.
//
// In a schema with Merge it adds the point's fields to the point that is there, and nil says that at some moment during
// the call the point held them all. Of two writers of one field at once either value may stay, also after the other's Put
// has returned, where the answer to the first was lost and it had to repeat itself; fields of others are never lost. Where
// what is there is no record that can be merged into, Put is rejected with ErrNoMerge. A write whose answer was lost is
// looked for, and is ErrUnknown only where its fields are not found by the end of the timeout.
//
// A failure is a *WriteError: it matches ErrRejected where the point is certainly not stored (ErrInvalid, ErrLate,
// ErrTooFarAhead, ErrExpired, codec.ErrEncode, or the service's refusal), and ErrUnknown where that cannot be known.
func (r *Repository[T]) Put(ctx context.Context, e Entity, t time.Time, v T) (err error) {
	ctx, op := r.begin(ctx, telemetry.Put)
	defer func() { op.End(err) }()
	if err := r.admit(ctx); err != nil {
		return rejected(err).err()
	}
	d, err := r.rows.DatasetForWrite(ctx)
	if err != nil {
		return rejected(err).err()
	}
	w, err := r.ready(d, Point[T]{Entity: e, Time: t, ID: r.id, Value: v}, r.store.core.Clock())
	if err != nil {
		return rejected(err).err()
	}
	n := r.rows.NewCacheWrite()
	n.Begin(&w)
	out := r.rows.Send(ctx, r.rows.View, &w)
	n.End(&w, out.State)
	return outcomeOf(out).err()
}

// PutIfAbsent stores one point where none is visible at that entity and time yet, and reports whether it did; an expired
// point counts as absent.
//
// It reads first. Where no point was there, and the conditional request then finds one with the very payload that was to be
// written, that is taken for this call's own, and PutIfAbsent reports true: a proxy may have sent the request twice and
// returned the second answer. An attempt whose answer was lost is made again, and judged likewise. So two callers that race
// with equal payloads may both be told true, as nothing that is stored tells them apart; to have one winner, let payloads
// differ by caller. Where the retry finds another payload, which may have replaced the first attempt's, the error matches
// ErrUnknown; in a schema with FirstWins nothing is ever replaced, and it reports false. Where the first read fails, a
// request that was sent twice cannot be seen: PutIfAbsent may then report false for its own point.
//
// It costs a read and one conditional request, which Bigtable takes only through a profile with single-cluster routing.
// Errors are those of Put, without ErrExists.
func (r *Repository[T]) PutIfAbsent(ctx context.Context, e Entity, t time.Time, v T) (stored bool, err error) {
	ctx, op := r.begin(ctx, telemetry.PutIfAbsent)
	defer func() { op.End(err) }()
	if err := r.admit(ctx); err != nil {
		return false, rejected(err).err()
	}
	d, err := r.rows.DatasetForWrite(ctx)
	if err != nil {
		return false, rejected(err).err()
	}
	w, err := r.ready(d, Point[T]{Entity: e, Time: t, ID: r.id, Value: v}, r.store.core.Clock())
	if err != nil {
		return false, rejected(err).err()
	}
	// The head is written after its point, also if an earlier try left it out.
	after := w.Head != "" && !w.HeadOnly
	n := r.rows.NewCacheWrite()
	n.Begin(&w)
	in := r.rows.Insertion(&w)
	in.Look = true
	var found bt.Inserted
	writes, outs := []*points.Write{&w}, make([]bt.Outcome, 1)
	r.rows.SendMarked(ctx, r.rows.View, writes, outs, false, func(ctx context.Context, _ int) {
		found, outs[0] = r.rows.View.Insert(ctx, in)
	})
	if after && found != bt.Other {
		r.rows.SendHeads(ctx, r.rows.View, writes, outs, false)
	}
	out := outs[0]
	n.Inserted(&w, found, out.State)
	if out.State != bt.Stored {
		return false, outcomeOf(r.rows.Explained(out)).err()
	}
	return found == bt.Fresh, nil
}

// PutMany stores the points and returns one outcome for each, in order; the error is nil where all are stored, and else a
// *BatchError, or a *WriteError where the call as a whole was refused. A point that cannot be stored does not hinder the
// others. Points may be in any order; of two at the same entity and time, and with the same ID, the later one in the slice is stored.
//
// It costs one request for every 8 MiB or 10,000 points, and memory for all of them at once. In a schema with FirstWins it
// costs one conditional request a point, 16 at a time, and the earlier of two is stored; in one with Merge likewise, and
// two are merged in their order. Each request is bounded by the
// timeout of writes, the whole call by that of scans.
func (r *Repository[T]) PutMany(ctx context.Context, batch []Point[T]) (outcomes []Outcome, err error) {
	ctx, op := r.beginMany(ctx, telemetry.Put, len(batch), true)
	defer func() { endWrites(op, err) }()
	outcomes = make([]Outcome, len(batch))
	err = r.admit(ctx)
	var d *dataset.Dataset
	if err == nil {
		d, err = r.rows.DatasetForWrite(ctx)
	}
	if err != nil {
		for i := range outcomes {
			outcomes[i] = rejected(err)
		}
		return outcomes, rejected(err).err()
	}
	now := r.store.core.Clock()
	writes := make([]*points.Write, 0, len(batch))
	index := make([]int, 0, len(batch))
	for i, p := range batch {
		w, err := r.ready(d, p, now)
		if err != nil {
			outcomes[i] = rejected(err)
			continue
		}
		writes = append(writes, &w)
		index = append(index, i)
	}
	n := r.rows.NewCacheWrite()
	for _, w := range writes {
		n.Begin(w)
	}
	for i, out := range r.rows.SendMany(ctx, r.rows.View, writes) {
		n.End(writes[i], out.State)
		outcomes[index[i]] = outcomeOf(out)
	}
	return outcomes, batchError(outcomes)
}
