package tsdb

import (
	"context"
	"errors"
	"fmt"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/store/dataset"
	"github.com/tidemark-go/tidemark/internal/store/rowkey"
)

// deletePoint deletes one point of a dataset with heads. The point's row goes first: a head that is mended meanwhile from
// the points may bring the point back as long as its row is there, and not afterwards.
func (r *Repository[T]) deletePoint(ctx context.Context, e Entity, units int64) Outcome {
	ctx, cancel := r.rows.Bound(ctx, true)
	defer cancel()
	d, cell := &r.schema.d, r.cellOf(units)
	m := dataset.NewHeadMutation()
	m.Clear(d.HeadColumns, cell, dataset.After(cell))
	if d.Head.Only {
		return r.store.outcome(r.rows.Apply(ctx, r.headKey(e.path), m.Mutation))
	}
	point := r.remove(ctx, r.removal(r.key(e, units), units))
	if point.State != bt.Stored {
		return r.store.outcome(point)
	}
	o := r.store.outcome(both(point, r.rows.Apply(ctx, r.headKey(e.path), m.Mutation)))
	if o.State != Stored {
		return o
	}
	if err := r.mend(ctx, e, units); err != nil {
		return Outcome{State: Unknown, Attempts: o.Attempts, Err: err}
	}
	return o
}

// deleteSpan is DeleteRange in a dataset with heads.
func (r *Repository[T]) deleteSpan(ctx context.Context, e Entity, oldest, newest int64) (deleted int, err error) {
	ctx, cancel := r.rows.Bound(ctx, true)
	defer cancel()
	d, key := &r.schema.d, r.headKey(e.path)
	if d.Head.Only {
		deleted, err = r.countVersions(ctx, e, oldest, newest)
	} else {
		deleted, err = r.deleteRows(ctx, r.space.Entity(e.path, oldest, newest))
	}
	failed, partly := errors.AsType[*BatchError](err)
	if err != nil && !partly {
		return deleted, err
	}
	m := dataset.NewHeadMutation()
	if oldest == 0 && newest == d.Precision.Max() {
		m.Mutation = r.deletion(r.schema.d.HeadClasses)
	} else {
		m.Clear(d.HeadColumns, r.cellOf(oldest), dataset.After(r.cellOf(newest)))
	}
	out := r.store.outcome(r.rows.Apply(ctx, key, m.Mutation))
	switch {
	case d.Head.Only && out.State != Stored:
		return 0, out.err()
	case d.Head.Only:
		return deleted, nil
	case out.State != Stored:
		return deleted, joined(failed, headError(e, out.Err))
	}
	return deleted, joined(failed, r.mend(ctx, e, newest))
}

// joined returns what kept points from being deleted together with what kept heads from being mended.
func joined(failed *BatchError, err error) error {
	switch {
	case failed == nil:
		return err
	case err == nil:
		return failed
	}
	return fmt.Errorf("%w; and %w", failed, err)
}

func headError(e Entity, err error) error {
	return fmt.Errorf("tsdb: points of %s are deleted, its head may be out of date (deleting again repairs it): %w", e, err)
}

// countVersions returns how many points a head row holds between two times, expired and uncollected ones too.
func (r *Repository[T]) countVersions(ctx context.Context, e Entity, oldest, newest int64) (int, error) {
	from, to := r.cellOf(oldest), dataset.After(r.cellOf(newest))
	filter := bigtable.ChainFilters(bigtable.TimestampRangeFilterMicros(from, to), bigtable.StripValueFilter())
	row, err := r.rows.Row(ctx, r.headKey(e.path), filter)
	return r.timesIn(row), r.store.core.Explain(err)
}

// timesIn returns how many points a head row holds.
func (r *Repository[T]) timesIn(row bigtable.Row) int {
	times := map[bigtable.Timestamp]bool{}
	for i := range r.schema.d.HeadClasses {
		for _, item := range row[r.schema.d.HeadClasses[i].Name] {
			times[item.Timestamp] = true
		}
	}
	return len(times)
}

// deleteUnder is DeletePrefix in a dataset with heads. Once points and heads are gone it looks for points that were written
// meanwhile, or could not be deleted, and brings them to their heads again.
func (r *Repository[T]) deleteUnder(ctx context.Context, path string) (deleted int, err error) {
	ctx, cancel := r.rows.Bound(ctx, true)
	defer cancel()
	if r.schema.d.Head.Only {
		report := &BatchError{}
		deleted, err = r.deleteHeads(ctx, r.heads.Under(path), report)
		if err == nil && len(report.Failed) > 0 {
			err = report
		}
		return deleted, err
	}
	deleted, err = r.deleteRows(ctx, r.space.Under(path)...)
	failed, partly := errors.AsType[*BatchError](err)
	if err != nil && !partly {
		return deleted, err
	}
	report := &BatchError{}
	_, err = r.deleteHeads(ctx, r.heads.Under(path), report)
	if err == nil {
		err = r.mendUnder(ctx, path)
	}
	if err == nil && len(report.Failed) > 0 {
		err = fmt.Errorf("tsdb: points are deleted, heads may be out of date (deleting again repairs them): %w", report)
	}
	return deleted, joined(failed, err)
}

// deleteHeads deletes the head rows in ranges page by page, and returns how many points they held.
func (r *Repository[T]) deleteHeads(ctx context.Context, ranges []rowkey.Range, report *BatchError) (deleted int, err error) {
	for _, rng := range ranges {
		for !rng.Empty() {
			page, next, err := r.headPage(ctx, rng)
			if err != nil {
				return deleted, err
			}
			rows, points := r.deleteHeadPage(ctx, page, report)
			deleted += points
			if rows == 0 && len(page) > 0 || len(report.Failed) >= maxFailures {
				return deleted, report
			}
			rng = next
		}
	}
	return deleted, nil
}

// headRow is a head that is to be deleted.
type headRow struct {
	key    string
	entity Entity
	points int
}

// headPage reads the first heads in rng, and returns what is left of it. Where there are no points beside it counts those
// in the heads.
func (r *Repository[T]) headPage(ctx context.Context, rng rowkey.Range) (page []headRow, next rowkey.Range, err error) {
	filter := dataset.KeysOnly()
	if r.schema.d.Head.Only {
		filter = bigtable.StripValueFilter()
	}
	read := bt.Scan{Rows: bigtable.NewRange(rng.Start, rng.Limit), Filter: filter, Limit: deletePage, Long: true}
	rows, last := 0, ""
	for row, err := range r.rows.Rows(ctx, read) {
		if err != nil {
			return nil, next, r.store.core.Explain(err)
		}
		last = row.Key()
		rows++
		if last < rng.Start || last >= rng.Limit {
			return nil, next, foreignRow(&r.schema.d)
		}
		if path, ok := r.heads.SplitEntity(last); ok {
			page = append(page, headRow{key: last, entity: Entity{path: path}, points: r.timesIn(row)})
		}
	}
	if rows == deletePage {
		next = rng.After(last)
	}
	return page, next, nil
}

// deleteHeadPage deletes heads, adds those that could not be deleted to the report, and returns how many were, and how many
// points they held.
func (r *Repository[T]) deleteHeadPage(ctx context.Context, page []headRow, report *BatchError) (rows, points int) {
	entries := make([]bt.Entry, len(page))
	for i, row := range page {
		entries[i] = bt.Entry{Key: row.key, Mutation: r.deletion(r.schema.d.HeadClasses), Mutations: len(r.schema.d.HeadClasses)}
	}
	for i, out := range r.rows.Bulk(ctx, entries) {
		if out.State == bt.Stored {
			rows++
			points += page[i].points
			continue
		}
		o := r.store.outcome(out)
		o.Err = fmt.Errorf("tsdb: head of %s: %w", page[i].entity, o.Err)
		report.Failed = append(report.Failed, Failure{Index: report.Total + i, Outcome: o})
	}
	report.Total += len(page)
	return rows, points
}

// mendUnder mends the heads of all entities below a prefix that still have points.
func (r *Repository[T]) mendUnder(ctx context.Context, path string) error {
	for _, rng := range r.space.Under(path) {
		for !rng.Empty() {
			found := ""
			read := bt.Scan{Rows: bigtable.NewRange(rng.Start, rng.Limit), Filter: dataset.KeysOnly(), Limit: 1, Long: true}
			for row, err := range r.rows.Rows(ctx, read) {
				if err != nil {
					return r.store.core.Explain(err)
				}
				found = row.Key()
			}
			if found == "" {
				break
			}
			if found < rng.Start || found >= rng.Limit {
				return foreignRow(&r.schema.d)
			}
			of, _, ok := r.space.Split(found)
			if !ok {
				rng = rng.After(found)
				continue
			}
			if err := r.mend(ctx, Entity{path: of}, r.schema.d.Precision.Max()); err != nil {
				return err
			}
			rng.Start = r.space.Entity(of, 0, r.schema.d.Precision.Max()).Limit
		}
	}
	return nil
}

func foreignRow(d *dataset.Dataset) error { return fmt.Errorf("%w: dataset %s", ErrForeignRow, d.Name) }
