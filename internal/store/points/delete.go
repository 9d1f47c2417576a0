package points

import (
	"context"
	"fmt"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/codecerr"
	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/store/dataset"
	"github.com/tidemark-go/tidemark/internal/store/rowkey"
)

const (
	deletePage  = 5000  // rows that are read, and then deleted in one step
	maxFailures = 10000 // a deletion gives up after this many rows that could not be deleted
)

// DeletePoint deletes one point. The ID is empty in a dataset without identity.
func (r *Rows) DeletePoint(ctx context.Context, path string, units int64, id string) (out bt.Outcome) {
	if err := r.admitDelete(); err != nil {
		return bt.Outcome{State: bt.Rejected, Err: err}
	}
	if r.D.Head.Any() {
		out = r.deletePoint(ctx, path, units)
	} else {
		out = r.Explained(r.Delete(ctx, r.removalOf(r.Key(path, units, id), units)))
	}
	if out.State != bt.Rejected {
		r.Cache.Changed(r.Space.ID(path), r.D.Layout, units)
	}
	return out
}

// DeleteSpan deletes the points of an entity between two times, both included.
func (r *Rows) DeleteSpan(ctx context.Context, path string, oldest, newest int64) Deletions {
	if err := r.admitDelete(); err != nil {
		return Deletions{Err: err}
	}
	defer r.Cache.Drop(r.Space.ID(path))
	if r.D.Head.Any() {
		return r.deleteSpan(ctx, path, oldest, newest)
	}
	return r.deleteRows(ctx, r.Space.Entity(path, oldest, newest))
}

// DeleteUnder deletes the points of all entities below a prefix.
func (r *Rows) DeleteUnder(ctx context.Context, path string) Deletions {
	if err := r.admitDelete(); err != nil {
		return Deletions{Err: err}
	}
	defer r.Cache.DropBelow(r.Space, path)
	if r.D.Head.Any() {
		return r.deleteUnder(ctx, path)
	}
	return r.deleteRows(ctx, r.Space.Under(path)...)
}

// admitDelete refuses a deletion with a schema that only reads.
func (r *Rows) admitDelete() error {
	if r.D.ReadOnly {
		return fmt.Errorf("tsdb: delete points of dataset %s: %w", invalid.Quote(r.D.Name), codecerr.ErrReadOnly)
	}
	return nil
}

// removalOf returns the removal of a point, by the key of its row.
func (r *Rows) removalOf(key string, units int64) Removal {
	return Removal{key: key, cell: bigtable.Timestamp(r.D.Precision.CellMicros(units))}
}

// deletion returns the mutation that deletes a row. A view that does not cover all families of the table refuses to
// delete a whole row, so with views the mutation names the families.
func (r *Rows) deletion(classes []dataset.Class) *bigtable.Mutation {
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

// deleteRows deletes the rows in the ranges that are points of this space, and no others.
func (r *Rows) deleteRows(ctx context.Context, ranges ...rowkey.Range) (out Deletions) {
	ctx, cancel := r.View.Bound(ctx, true)
	defer cancel()
	for _, rng := range ranges {
		for !rng.Empty() {
			page, next, err := r.page(ctx, rng)
			if err != nil {
				out.Points, out.Err = Report{}, err
				return out
			}
			n := r.deletePage(ctx, page, &out.Points)
			out.Deleted += n
			if out.Points.giveUp(n, len(page)) {
				return out
			}
			rng = next
		}
	}
	return out
}

// page reads the keys of the first points in rng, and returns the rest of rng.
func (r *Rows) page(ctx context.Context, rng rowkey.Range) (points []Removal, next rowkey.Range, err error) {
	next, err = r.firstRows(ctx, rng, bt.KeysOnly(), func(row *bt.Row) {
		if _, units, ok := r.Space.Split(row.Key()); ok {
			points = append(points, r.removalOf(row.Key(), units))
		}
	})
	return points, next, err
}

// firstRows visits up to deletePage rows at the start of rng, and returns the rest of rng.
func (r *Rows) firstRows(ctx context.Context, rng rowkey.Range, filter bigtable.Filter, visit func(*bt.Row)) (next rowkey.Range, err error) {
	read := bt.Scan{Rows: bigtable.NewRange(rng.Start, rng.Limit), Filter: filter, Limit: deletePage, Long: true}
	rows, last := 0, ""
	for row, err := range r.View.Rows(ctx, read) {
		if err != nil {
			return next, r.Explain(err)
		}
		last = row.Key()
		rows++
		if last < rng.Start || last >= rng.Limit {
			return next, ForeignRow(r.D)
		}
		visit(row)
	}
	if rows == deletePage {
		next = rng.After(last)
	}
	return next, nil
}

// deletePage deletes rows. It adds the rows that could not be deleted to the report, and returns the number of deleted
// rows.
func (r *Rows) deletePage(ctx context.Context, page []Removal, report *Report) (deleted int) {
	for i, out := range r.removeMany(ctx, page) {
		if out.State == bt.Stored {
			deleted++
			continue
		}
		path, units, id, _ := r.Space.SplitEvent(page[i].key)
		report.Failed = append(report.Failed, Failure{Index: report.Total + i, Path: path, Units: units, ID: id, Outcome: r.Explained(out)})
	}
	report.Total += len(page)
	return deleted
}

// Deletions is the result of a deletion of many points.
type Deletions struct {
	Deleted int         // points
	Points  Report      // about rows of points, or about heads if there are no rows
	Heads   Report      // about heads, if there are rows of points too
	Head    *bt.Outcome // the outcome for the only row, if it was not deleted
	Err     error       // the error that ended the deletion early
}

// Report lists the rows that could not be deleted.
type Report struct {
	Total  int
	Failed []Failure
	GaveUp bool
}

// Failure is one row that could not be deleted. A head has no path; its outcome names it.
type Failure struct {
	Index   int
	Path    string
	Units   int64
	ID      string
	Outcome bt.Outcome
}

// giveUp reports whether a deletion must end after a page: none of its rows was deleted, or too many rows have failed.
func (r *Report) giveUp(deleted, page int) bool {
	r.GaveUp = deleted == 0 && page > 0 || len(r.Failed) >= maxFailures
	return r.GaveUp
}
