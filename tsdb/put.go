package tsdb

import (
	"context"
	"time"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/store/dataset"
	"github.com/tidemark-go/tidemark/internal/store/points"
	"github.com/tidemark-go/tidemark/internal/telemetry"
)

// Put stores one point, and replaces the value if the point exists, so it is safe to repeat. In a schema with Identity
// the ID of WithID is part of the point. It costs one request; in a schema with heads the request writes two rows.
//
// In a schema with FirstWins, Put stores the point only if no visible point exists. If one exists with the same
// payload, byte for byte, Put returns nil; with another payload it fails with ErrExists. It costs one conditional
// request, and a read if the point exists.
//
// In a schema with Merge, Put adds the point's fields to the stored point. Nil means that at some moment during the
// call the stored point had all of them. If two writers write the same field at the same time, either value may remain,
// even after the other writer's Put has returned. Fields of other writers are never lost. If Put cannot merge into the
// stored payload, it fails. If a response is lost, Put reads the point, and fails with ErrUnknown only if it has not
// found its fields before the timeout.
//
// Errors are a *WriteError. It matches ErrRejected if the point is certainly not stored (ErrInvalid, ErrLate,
// ErrTooFarAhead, ErrExpired, codec.ErrEncode, an exceeded limit, or the service's refusal), and ErrUnknown otherwise.
func (r *Repository[T]) Put(ctx context.Context, e Entity, t time.Time, v T) (err error) {
	ctx, op := r.part().begin(ctx, telemetry.Put)
	defer func() { op.End(err) }()
	w, err := r.prepare(ctx, e, t, v)
	if err != nil {
		return rejected(err).err()
	}
	return outcomeOf(r.rows.Send(ctx, r.rows.View, &w)).err()
}

// PutIfAbsent stores one point if no visible point exists for this entity and time, and reports whether it did. Expired
// points count as absent.
//
// It first reads the point, then sends a conditional request. If the read found nothing, but the request finds a point
// with the same payload, PutIfAbsent returns true: a proxy may have sent the request twice and returned the second
// response. If a response is lost, it repeats the request in the same way. The consequences:
//
//   - Two concurrent callers with equal payloads may both get true. For a single winner, make the payloads differ by caller.
//   - If a repeated request finds another payload, that payload may have replaced the one of the first attempt: the error
//     matches ErrUnknown. In a schema with FirstWins nothing is replaced, so the result is false.
//   - If the first read fails, a request that was sent twice cannot be detected: the result may be false for the caller's own
//     point.
//
// It costs one read and one conditional request. Bigtable accepts conditional requests only through an app profile with
// single-cluster routing. Errors are those of Put, without ErrExists.
func (r *Repository[T]) PutIfAbsent(ctx context.Context, e Entity, t time.Time, v T) (stored bool, err error) {
	ctx, op := r.part().begin(ctx, telemetry.PutIfAbsent)
	defer func() { op.End(err) }()
	w, err := r.prepare(ctx, e, t, v)
	if err != nil {
		return false, rejected(err).err()
	}
	found, out := r.rows.SendIfAbsent(ctx, &w)
	if out.State != bt.Stored {
		return false, outcomeOf(out).err()
	}
	return found == bt.Fresh, nil
}

// PutMany stores the points and returns one outcome per point, in order. A point that cannot be stored does not affect
// the others. The error is nil if all points are stored, a *WriteError if the whole call was refused, and a *BatchError
// otherwise. Points may be in any order. If two have the same entity, time and ID, the later one in the slice is
// stored.
//
// It costs one request per 8 MiB or 10,000 points, and memory for all points at once. In schemas with FirstWins or
// Merge it costs one conditional request per point, 16 at a time; of two points with the same entity, time and ID,
// FirstWins keeps the earlier one, and Merge merges them in order. The write timeout bounds each request, the scan
// timeout the whole call.
func (r *Repository[T]) PutMany(ctx context.Context, batch []Point[T]) ([]Outcome, error) {
	return r.part().putMany(ctx, len(batch), func(i int, d *dataset.Dataset, now time.Time) (points.Write, error) {
		return r.ready(d, batch[i], now)
	})
}

func (a *access) putMany(ctx context.Context, n int, ready func(i int, d *dataset.Dataset, now time.Time) (points.Write, error)) (outcomes []Outcome, err error) {
	ctx, op := a.beginMany(ctx, telemetry.Put, n, true)
	defer func() { endWrites(op, err) }()
	outcomes = make([]Outcome, n)
	d, err := a.admitWrite(ctx)
	if err != nil {
		for i := range outcomes {
			outcomes[i] = rejected(err)
		}
		return outcomes, rejected(err).err()
	}
	now := a.store.core.Clock()
	writes := make([]*points.Write, 0, n)
	index := make([]int, 0, n)
	for i := range n {
		w, err := ready(i, d, now)
		if err != nil {
			outcomes[i] = rejected(err)
			continue
		}
		writes = append(writes, &w)
		index = append(index, i)
	}
	for i, out := range a.rows.SendMany(ctx, a.rows.View, writes) {
		outcomes[index[i]] = outcomeOf(out)
	}
	return outcomes, batchError(outcomes)
}

// prepare admits a write of one point and returns it.
func (r *Repository[T]) prepare(ctx context.Context, e Entity, t time.Time, v T) (points.Write, error) {
	d, err := r.part().admitWrite(ctx)
	if err != nil {
		return points.Write{}, err
	}
	return r.ready(d, Point[T]{Entity: e, Time: t, ID: r.id, Value: v}, r.store.core.Clock())
}

// admitWrite admits a write, and returns the schema's dataset in the tenant's class.
func (a *access) admitWrite(ctx context.Context) (*dataset.Dataset, error) {
	if err := a.admit(ctx); err != nil {
		return nil, err
	}
	return a.rows.DatasetForWrite(ctx)
}

// ready checks a point and returns its write. It checks the tenant's limits last, so only points that would be sent
// count.
func (r *Repository[T]) ready(d *dataset.Dataset, p Point[T], now time.Time) (points.Write, error) {
	w, err := r.encode(d, p, now)
	if err != nil {
		return points.Write{}, err
	}
	if err := r.rows.CountWrite(p.Entity.path, &w); err != nil {
		return points.Write{}, err
	}
	return w, nil
}

// encode is ready without the tenant's limits. d is the schema's dataset in the tenant's class.
func (r *Repository[T]) encode(d *dataset.Dataset, p Point[T], now time.Time) (points.Write, error) {
	units, err := r.rows.Prepare(d, p.Entity.path, p.ID, p.Time, now)
	if err != nil {
		return points.Write{}, err
	}
	payload, err := codec.Append(r.schema.codec, nil, p.Value)
	if err != nil {
		return points.Write{}, err
	}
	return r.rows.NewWrite(d, p.Entity.path, units, p.ID, payload)
}
