package tsdb

import (
	"context"
	"time"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/internal/store/dataset"
	"github.com/tidemark-go/tidemark/internal/store/points"
)

// prepare admits a write of one point and returns it.
func (r *Repository[T]) prepare(ctx context.Context, e Entity, t time.Time, v T) (points.Write, error) {
	if err := r.admit(ctx); err != nil {
		return points.Write{}, err
	}
	d, err := r.rows.DatasetForWrite(ctx)
	if err != nil {
		return points.Write{}, err
	}
	return r.ready(d, Point[T]{Entity: e, Time: t, ID: r.id, Value: v}, r.store.core.Clock())
}

// ready checks a point and returns its write. It checks the tenant's limits last, so only points that would be sent count.
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

// readSpan begins a read of an interval, after a check of the tenant's limits.
func (r *Repository[T]) readSpan(in Interval) (done func(), err error) {
	if err := r.admitSpan(in); err != nil {
		return nil, err
	}
	return r.rows.BeginRead()
}

func (r *Repository[T]) admitSpan(in Interval) error {
	start, _ := in.Start()
	end, ended := in.End()
	return r.rows.AdmitSpan(start, end, ended)
}
