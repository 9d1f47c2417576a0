package tsdb

import (
	"context"
	"fmt"
	"time"

	"github.com/tidemark-go/tidemark/internal/store/points"
	"github.com/tidemark-go/tidemark/internal/telemetry"
)

// Delete deletes the point of an entity at exactly t, truncated to the schema's precision; in a schema with Identity,
// the one with the ID of WithID. Deleting a point that does not exist is not an error, so Delete is safe to repeat.
// Errors are a *WriteError, as for Put. It costs one request. In a schema with heads it costs three; four if the point
// was among the newest; six if the head is refilled from older points.
func (r *Repository[T]) Delete(ctx context.Context, e Entity, t time.Time) error {
	return r.part().deletePoint(ctx, e, t)
}

func (a *access) deletePoint(ctx context.Context, e Entity, t time.Time) (err error) {
	ctx, op := a.begin(ctx, telemetry.Delete)
	defer func() { op.End(err) }()
	if err := a.admitEntity(ctx, e); err != nil {
		return rejected(err).err()
	}
	if err := a.rows.Space.CheckID(a.id); err != nil {
		return rejected(err).err()
	}
	units, err := a.rows.D.Precision.Units(t)
	if err != nil {
		return rejected(err).err()
	}
	defer a.pauseChanges(e.path)()
	return outcomeOf(a.rows.DeletePoint(ctx, e.path, units, a.id)).err()
}

// DeleteRange deletes the points of an entity in an interval (AllTime for all of them), including expired ones, and
// returns the number of deleted points. Points that are written meanwhile may remain. It is safe to repeat.
//
// It reads keys and deletes them page by page: two requests per 5,000 points. The scan timeout bounds the whole call. A
// point that cannot be deleted does not affect the others; a *BatchError lists such points. It stops early if a whole
// page fails, if 10,000 points in total fail, or on any other error. The count is valid in each case.
func (r *Repository[T]) DeleteRange(ctx context.Context, e Entity, in Interval) (deleted int, err error) {
	return r.part().deleteRange(ctx, e, in)
}

func (a *access) deleteRange(ctx context.Context, e Entity, in Interval) (deleted int, err error) {
	ctx, op := a.begin(ctx, telemetry.DeleteRange)
	defer func() { op.End(err) }()
	if err := a.admitEntity(ctx, e); err != nil {
		return 0, err
	}
	if err := in.check(); err != nil {
		return 0, err
	}
	oldest, newest := in.units(a.rows.D.Precision)
	if oldest > newest {
		return 0, nil
	}
	defer a.pauseChanges(e.path)()
	return a.deletionOf(a.rows.DeleteSpan(ctx, e.path, oldest, newest))
}

// DeletePrefix deletes all points of every entity below a prefix, or of the tenant's whole dataset for AllEntities.
// Costs and errors are those of DeleteRange.
func (r *Repository[T]) DeletePrefix(ctx context.Context, p Prefix) (deleted int, err error) {
	return r.part().deletePrefix(ctx, p)
}

func (a *access) deletePrefix(ctx context.Context, p Prefix) (deleted int, err error) {
	ctx, op := a.begin(ctx, telemetry.DeletePrefix)
	defer func() { op.End(err) }()
	if err := a.admitPrefix(ctx, p); err != nil {
		return 0, err
	}
	defer a.pauseChangesUnder(p)()
	return a.deletionOf(a.rows.DeleteUnder(ctx, p.path))
}

// deletionOf returns the count and the error of a deletion of many points.
func (a *access) deletionOf(d points.Deletions) (deleted int, err error) {
	if d.Head != nil {
		return 0, outcomeOf(*d.Head).err()
	}
	points, heads := a.batchOf(d.Points), a.batchOf(d.Heads)
	if err = d.Err; err == nil && heads != nil {
		err = heads
		if !d.Heads.GaveUp {
			err = fmt.Errorf("tsdb: points are deleted, heads may be out of date (deleting again repairs them): %w", heads)
		}
	}
	switch {
	case points == nil:
	case err == nil:
		err = points
	default:
		err = fmt.Errorf("%w; and %w", points, err)
	}
	return d.Deleted, err
}

// batchOf returns a *BatchError for the rows that could not be deleted, or nil.
func (a *access) batchOf(d points.Report) *BatchError {
	if len(d.Failed) == 0 {
		return nil
	}
	out := &BatchError{Total: d.Total}
	for _, f := range d.Failed {
		o := outcomeOf(f.Outcome)
		if f.Path != "" {
			o.Err = &PointError{Entity: Entity{path: f.Path}, Time: a.rows.D.Precision.Time(f.Units), ID: f.ID, Err: o.Err}
		}
		out.Failed = append(out.Failed, Failure{Index: f.Index, Outcome: o})
	}
	return out
}
