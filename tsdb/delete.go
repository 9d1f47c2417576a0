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
	if err := r.rows.space.CheckID(r.id); err != nil {
		return rejected(err).err()
	}
	units, err := r.schema.d.Precision.Units(t)
	if err != nil {
		return rejected(err).err()
	}
	var out Outcome
	if r.schema.d.Head.Points > 0 {
		out = outcomeOf(r.rows.deletePoint(ctx, e.path, units))
	} else {
		out = outcomeOf(r.rows.explained(r.rows.remove(ctx, r.rows.removal(r.rows.key(e.path, units, r.id), units))))
	}
	if out.State != Rejected {
		r.store.core.cache.Changed(r.rows.space.ID(e.path), r.schema.d.Layout, units)
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
	defer r.store.core.cache.Drop(r.rows.space.ID(e.path))
	if r.schema.d.Head.Points > 0 {
		return r.deletionOf(r.rows.deleteSpan(ctx, e.path, oldest, newest))
	}
	return r.deletionOf(r.rows.deleteRows(ctx, r.rows.space.Entity(e.path, oldest, newest)))
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
	defer r.store.core.cache.DropBelow(r.rows.space, p.path)
	if r.schema.d.Head.Points > 0 {
		return r.deletionOf(r.rows.deleteUnder(ctx, p.path))
	}
	return r.deletionOf(r.rows.deleteRows(ctx, r.rows.space.Under(p.path)...))
}

// deletionOf returns what a deletion of many points says to its caller.
func (r *Repository[T]) deletionOf(d deletions) (deleted int, err error) {
	if d.head != nil {
		return 0, outcomeOf(*d.head).err()
	}
	points, heads := r.batchOf(d.points), r.batchOf(d.heads)
	if err = d.err; err == nil && heads != nil {
		err = heads
		if !d.heads.gaveUp {
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
	return d.deleted, err
}

// batchOf returns the error about rows that could not be deleted, nil for none.
func (r *Repository[T]) batchOf(d report) *BatchError {
	if len(d.failed) == 0 {
		return nil
	}
	out := &BatchError{Total: d.total}
	for _, f := range d.failed {
		o := outcomeOf(f.outcome)
		if f.path != "" {
			o.Err = &PointError{Entity: Entity{path: f.path}, Time: r.rows.d.Precision.Time(f.units), ID: f.id, Err: o.Err}
		}
		out.Failed = append(out.Failed, Failure{Index: f.index, Outcome: o})
	}
	return out
}

// removal returns what is to be deleted of a point by the key of its row.
func (r *rows) removal(key string, units int64) removal {
	return removal{key: key, cell: bigtable.Timestamp(r.d.Precision.CellMicros(units))}
}

// deletion returns the mutation that deletes a row with those classes. A whole row cannot be deleted through a view that
// does not cover every family of the table, so there it names the families.
func (r *rows) deletion(classes []dataset.Class) *bigtable.Mutation {
	m := bigtable.NewMutation()
	if r.Views == nil {
		m.DeleteRow()
		return m
	}
	for i := range classes {
		m.DeleteCellsInFamily(classes[i].Name)
	}
	return m
}

// deleteRows deletes the rows of the ranges that are points of this space, and no other.
func (r *rows) deleteRows(ctx context.Context, ranges ...rowkey.Range) (out deletions) {
	ctx, cancel := r.bt.Bound(ctx, true)
	defer cancel()
	for _, rng := range ranges {
		for !rng.Empty() {
			page, next, err := r.page(ctx, rng)
			if err != nil {
				out.err = err
				return out
			}
			n := r.deletePage(ctx, page, &out.points)
			out.deleted += n
			if out.points.giveUp(n, len(page)) {
				return out
			}
			rng = next
		}
	}
	return out
}

// page reads the keys of the first points in rng, and returns what is left of it.
func (r *rows) page(ctx context.Context, rng rowkey.Range) (points []removal, next rowkey.Range, err error) {
	read := bt.Scan{Rows: bigtable.NewRange(rng.Start, rng.Limit), Filter: dataset.KeysOnly(), Limit: deletePage, Long: true}
	rows, last := 0, ""
	for row, err := range r.bt.Rows(ctx, read) {
		if err != nil {
			return nil, next, r.Explain(err)
		}
		last = row.Key()
		rows++
		if last < rng.Start || last >= rng.Limit {
			return nil, next, foreignRow(r.d)
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
func (r *rows) deletePage(ctx context.Context, page []removal, report *report) (deleted int) {
	for i, out := range r.removeMany(ctx, page) {
		if out.State == bt.Stored {
			deleted++
			continue
		}
		path, units, id, _ := r.space.SplitEvent(page[i].key)
		report.failed = append(report.failed, failure{index: report.total + i, path: path, units: units, id: id, outcome: r.explained(out)})
	}
	report.total += len(page)
	return deleted
}

// deletions are what became of a deletion of many points.
type deletions struct {
	deleted int         // points
	points  report      // of rows of points, or of heads where there are no others
	heads   report      // of heads beside the points
	head    *bt.Outcome // of the only row there was, where it is not stored
	err     error       // what ended the deletion
}

// report says which rows of how many could not be deleted.
type report struct {
	total  int
	failed []failure
	gaveUp bool
}

// failure is one row that could not be deleted. A head has no path; its outcome names it.
type failure struct {
	index   int
	path    string
	units   int64
	id      string
	outcome bt.Outcome
}

// giveUp decides whether a deletion ends after a page of which some rows were deleted.
func (r *report) giveUp(deleted, page int) bool {
	r.gaveUp = deleted == 0 && page > 0 || len(r.failed) >= maxFailures
	return r.gaveUp
}
