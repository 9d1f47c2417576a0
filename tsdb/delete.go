package tsdb

import (
	"context"
	"fmt"
	"time"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/store/dataset"
	"github.com/tidemark-go/tidemark/internal/store/rowkey"
	"github.com/tidemark-go/tidemark/internal/telemetry"
)

const (
	deletePage  = 5000  // rows that are read and then deleted at once
	maxFailures = 10000 // rows that could not be deleted, after which a deletion gives up
)

// Delete deletes the point of an entity at exactly that time, cut off to the schema's precision, in a schema with Identity the one
// with the ID of WithID. Deleting a point that is
// not there is no error, so a Delete may be repeated. Errors are a *WriteError, as for Put. It costs one request; in a
// schema with heads three, and four where the point was among the newest, or six where the head is filled up from older ones.
func (r *Repository[T]) Delete(ctx context.Context, e Entity, t time.Time) (err error) {
	ctx, op := r.begin(ctx, telemetry.Delete)
	defer func() { op.End(err) }()
	if err := r.admitEntity(ctx, e); err != nil {
		return rejected(err).err()
	}
	if err := r.space.CheckID(r.id); err != nil {
		return rejected(err).err()
	}
	units, err := r.schema.d.Precision.Units(t)
	if err != nil {
		return rejected(err).err()
	}
	var out Outcome
	if r.schema.d.Head.Points > 0 {
		out = r.deletePoint(ctx, e, units)
	} else {
		out = r.store.outcome(r.remove(ctx, r.removal(r.key(e, units), units)))
	}
	if out.State != Rejected {
		r.store.core.cache.Changed(r.space.ID(e.path), r.schema.d.Layout, units)
	}
	return out.err()
}

// DeleteRange deletes the points of an entity in an interval, expired ones too, and returns how many. Points written while
// it runs may stay. It may be repeated.
//
// It reads the keys and deletes them page by page (two requests for 5,000 points), so its cost grows with the points; the
// timeout of scans bounds the whole call. A point that cannot be deleted does not hinder the others, and is reported in a
// *BatchError. After a page of which nothing, or 10,000 points that could not be deleted, it gives up. Any other error ends
// it too; the count then says how many were deleted before.
func (r *Repository[T]) DeleteRange(ctx context.Context, e Entity, in Interval) (deleted int, err error) {
	ctx, op := r.begin(ctx, telemetry.DeleteRange)
	defer func() { op.End(err) }()
	if err := r.admitEntity(ctx, e); err != nil {
		return 0, err
	}
	if err := in.Check(); err != nil {
		return 0, err
	}
	oldest, newest, ok := in.units(r.schema.d.Precision)
	if !ok {
		return 0, nil
	}
	defer r.store.core.cache.Drop(r.space.ID(e.path))
	if r.schema.d.Head.Points > 0 {
		return r.deleteSpan(ctx, e, oldest, newest)
	}
	return r.deleteRows(ctx, r.space.Entity(e.path, oldest, newest))
}

// DeleteEntity deletes all points of an entity in this dataset. It is DeleteRange over all of time.
func (r *Repository[T]) DeleteEntity(ctx context.Context, e Entity) (deleted int, err error) {
	ctx, op := r.begin(ctx, telemetry.DeleteEntity)
	defer func() { op.End(err) }()
	return r.DeleteRange(ctx, e, AllTime())
}

// DeletePrefix deletes all points of every entity below a prefix, or of the tenant's whole dataset for AllEntities. Costs
// and errors are those of DeleteRange.
func (r *Repository[T]) DeletePrefix(ctx context.Context, p Prefix) (deleted int, err error) {
	ctx, op := r.begin(ctx, telemetry.DeletePrefix)
	defer func() { op.End(err) }()
	if err := r.admitPrefix(ctx, p); err != nil {
		return 0, err
	}
	defer r.store.core.cache.DropBelow(r.space, p.path)
	if r.schema.d.Head.Points > 0 {
		return r.deleteUnder(ctx, p.path)
	}
	return r.deleteRows(ctx, r.space.Under(p.path)...)
}

// removal returns what is to be deleted of a point by the key of its row.
func (r *Repository[T]) removal(key string, units int64) removal {
	return removal{key: key, cell: bigtable.Timestamp(r.schema.d.Precision.CellMicros(units))}
}

// deletion returns the mutation that deletes a row with those classes. A whole row cannot be deleted through a view that
// does not cover every family of the table, so there it names the families.
func (r *Repository[T]) deletion(classes []dataset.Class) *bigtable.Mutation {
	m := bigtable.NewMutation()
	if r.store.core.Views == nil {
		m.DeleteRow()
		return m
	}
	for i := range classes {
		m.DeleteCellsInFamily(classes[i].Name)
	}
	return m
}

// deleteRows deletes the rows of the ranges that are points of this repository's space, and no other.
func (r *Repository[T]) deleteRows(ctx context.Context, ranges ...rowkey.Range) (deleted int, err error) {
	ctx, cancel := r.rows.Bound(ctx, true)
	defer cancel()
	report := BatchError{}
	for _, rng := range ranges {
		for !rng.Empty() {
			page, next, err := r.page(ctx, rng)
			if err != nil {
				return deleted, err
			}
			n := r.deletePage(ctx, page, &report)
			deleted += n
			if n == 0 && len(page) > 0 || len(report.Failed) >= maxFailures {
				return deleted, &report
			}
			rng = next
		}
	}
	if len(report.Failed) > 0 {
		return deleted, &report
	}
	return deleted, nil
}

// page reads the keys of the first points in rng, and returns what is left of it.
func (r *Repository[T]) page(ctx context.Context, rng rowkey.Range) (points []removal, next rowkey.Range, err error) {
	read := bt.Scan{Rows: bigtable.NewRange(rng.Start, rng.Limit), Filter: dataset.KeysOnly(), Limit: deletePage, Long: true}
	rows, last := 0, ""
	for row, err := range r.rows.Rows(ctx, read) {
		if err != nil {
			return nil, next, r.store.core.Explain(err)
		}
		last = row.Key()
		rows++
		if last < rng.Start || last >= rng.Limit {
			return nil, next, fmt.Errorf("%w: dataset %s", ErrForeignRow, r.schema.d.Name)
		}
		if _, units, ok := r.space.Split(last); ok {
			points = append(points, r.removal(last, units))
		}
	}
	if rows == deletePage {
		next = rng.After(last)
	}
	return points, next, nil
}

// deletePage deletes rows, adds those that could not be deleted to the report, and returns how many were.
func (r *Repository[T]) deletePage(ctx context.Context, page []removal, report *BatchError) (deleted int) {
	for i, out := range r.removeMany(ctx, page) {
		if out.State == bt.Stored {
			deleted++
			continue
		}
		o := r.store.outcome(out)
		path, units, id, _ := r.space.SplitEvent(page[i].key)
		o.Err = &PointError{Entity: Entity{path: path}, Time: r.schema.d.Precision.Time(units), ID: id, Err: o.Err}
		report.Failed = append(report.Failed, Failure{Index: report.Total + i, Outcome: o})
	}
	report.Total += len(page)
	return deleted
}
