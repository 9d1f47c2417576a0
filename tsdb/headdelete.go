package tsdb

import (
	"context"
	"fmt"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/store/dataset"
	"github.com/tidemark-go/tidemark/internal/store/rowkey"
)

// deletePoint deletes one point of a dataset with heads. The point's row goes first: a head that is repaired meanwhile from
// the points may bring the point back as long as its row is there, and not afterwards.
func (r *rows) deletePoint(ctx context.Context, path string, units int64) bt.Outcome {
	ctx, cancel := r.bt.Bound(ctx, true)
	defer cancel()
	cell := r.cellOf(units)
	m := dataset.NewHeadMutation()
	m.Clear(r.d.HeadColumns, cell, dataset.After(cell))
	if r.d.Head.Only {
		return r.explained(r.bt.Apply(ctx, r.headKey(path), m.Mutation))
	}
	point := r.remove(ctx, r.removal(r.key(path, units, ""), units))
	if point.State != bt.Stored {
		return r.explained(point)
	}
	o := r.explained(both(point, r.bt.Apply(ctx, r.headKey(path), m.Mutation)))
	if o.State != bt.Stored {
		return o
	}
	if err := r.mend(ctx, path, units); err != nil {
		return bt.Outcome{State: bt.Unknown, Attempts: o.Attempts, Err: err}
	}
	return o
}

// deleteSpan deletes the points of an entity between two times, both included, in a dataset with heads.
func (r *rows) deleteSpan(ctx context.Context, path string, oldest, newest int64) (out deletions) {
	ctx, cancel := r.bt.Bound(ctx, true)
	defer cancel()
	key := r.headKey(path)
	if r.d.Head.Only {
		out.deleted, out.err = r.countVersions(ctx, path, oldest, newest)
	} else {
		out = r.deleteRows(ctx, r.space.Entity(path, oldest, newest))
	}
	if out.err != nil {
		return out
	}
	m := dataset.NewHeadMutation()
	if oldest == 0 && newest == r.d.Precision.Max() {
		m.Mutation = r.deletion(r.d.HeadClasses)
	} else {
		m.Clear(r.d.HeadColumns, r.cellOf(oldest), dataset.After(r.cellOf(newest)))
	}
	head := r.explained(r.bt.Apply(ctx, key, m.Mutation))
	switch {
	case r.d.Head.Only && head.State != bt.Stored:
		return deletions{head: &head}
	case r.d.Head.Only:
	case head.State != bt.Stored:
		out.err = headError(path, head.Err)
	default:
		out.err = r.mend(ctx, path, newest)
	}
	return out
}

func headError(path string, err error) error {
	return fmt.Errorf("tsdb: points of %s are deleted, its head may be out of date (deleting again repairs it): %w", path, err)
}

// countVersions returns how many points a head row holds between two times, expired and uncollected ones too.
func (r *rows) countVersions(ctx context.Context, path string, oldest, newest int64) (int, error) {
	from, to := r.cellOf(oldest), dataset.After(r.cellOf(newest))
	filter := bigtable.ChainFilters(bigtable.TimestampRangeFilterMicros(from, to), bigtable.StripValueFilter())
	row, err := r.bt.Row(ctx, r.headKey(path), filter)
	return r.timesIn(row), r.Explain(err)
}

// timesIn returns how many points a head row holds.
func (r *rows) timesIn(row bigtable.Row) int {
	times := map[bigtable.Timestamp]bool{}
	for i := range r.d.HeadClasses {
		for _, item := range row[r.d.HeadClasses[i].Name] {
			times[item.Timestamp] = true
		}
	}
	return len(times)
}

// deleteUnder deletes the points of all entities below a prefix, in a dataset with heads. Once points and heads are gone it
// looks for points that were written meanwhile, or could not be deleted, and brings them to their heads again.
func (r *rows) deleteUnder(ctx context.Context, path string) (out deletions) {
	ctx, cancel := r.bt.Bound(ctx, true)
	defer cancel()
	if r.d.Head.Only {
		out.deleted, out.err = r.deleteHeads(ctx, r.heads.Under(path), &out.points)
		return out
	}
	out = r.deleteRows(ctx, r.space.Under(path)...)
	if out.err != nil {
		return out
	}
	if _, out.err = r.deleteHeads(ctx, r.heads.Under(path), &out.heads); out.err == nil && !out.heads.gaveUp {
		out.err = r.mendUnder(ctx, path)
	}
	return out
}

// deleteHeads deletes the head rows in ranges page by page, and returns how many points they held.
func (r *rows) deleteHeads(ctx context.Context, ranges []rowkey.Range, report *report) (deleted int, err error) {
	for _, rng := range ranges {
		for !rng.Empty() {
			page, next, err := r.headPage(ctx, rng)
			if err != nil {
				return deleted, err
			}
			rows, points := r.deleteHeadPage(ctx, page, report)
			deleted += points
			if report.giveUp(rows, len(page)) {
				return deleted, nil
			}
			rng = next
		}
	}
	return deleted, nil
}

// headRow is a head that is to be deleted.
type headRow struct {
	key    string
	path   string
	points int
}

// headPage reads the first heads in rng, and returns what is left of it. Where there are no points beside it counts those
// in the heads.
func (r *rows) headPage(ctx context.Context, rng rowkey.Range) (page []headRow, next rowkey.Range, err error) {
	filter := dataset.KeysOnly()
	if r.d.Head.Only {
		filter = bigtable.StripValueFilter()
	}
	read := bt.Scan{Rows: bigtable.NewRange(rng.Start, rng.Limit), Filter: filter, Limit: deletePage, Long: true}
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
		if path, ok := r.heads.SplitEntity(last); ok {
			page = append(page, headRow{key: last, path: path, points: r.timesIn(row)})
		}
	}
	if rows == deletePage {
		next = rng.After(last)
	}
	return page, next, nil
}

// deleteHeadPage deletes heads, adds those that could not be deleted to the report, and returns how many were, and how many
// points they held.
func (r *rows) deleteHeadPage(ctx context.Context, page []headRow, report *report) (rows, points int) {
	entries := make([]bt.Entry, len(page))
	for i, row := range page {
		entries[i] = bt.Entry{Key: row.key, Mutation: r.deletion(r.d.HeadClasses), Mutations: len(r.d.HeadClasses)}
	}
	for i, out := range r.bt.Bulk(ctx, entries) {
		if out.State == bt.Stored {
			rows++
			points += page[i].points
			continue
		}
		out = r.explained(out)
		out.Err = fmt.Errorf("tsdb: head of %s: %w", page[i].path, out.Err)
		report.failed = append(report.failed, failure{index: report.total + i, outcome: out})
	}
	report.total += len(page)
	return rows, points
}

// mendUnder mends the heads of all entities below a prefix that still have points.
func (r *rows) mendUnder(ctx context.Context, path string) error {
	for _, rng := range r.space.Under(path) {
		for !rng.Empty() {
			found := ""
			read := bt.Scan{Rows: bigtable.NewRange(rng.Start, rng.Limit), Filter: dataset.KeysOnly(), Limit: 1, Long: true}
			for row, err := range r.bt.Rows(ctx, read) {
				if err != nil {
					return r.Explain(err)
				}
				found = row.Key()
			}
			if found == "" {
				break
			}
			if found < rng.Start || found >= rng.Limit {
				return foreignRow(r.d)
			}
			of, _, ok := r.space.Split(found)
			if !ok {
				rng = rng.After(found)
				continue
			}
			if err := r.mend(ctx, of, r.d.Precision.Max()); err != nil {
				return err
			}
			rng.Start = r.space.Entity(of, 0, r.d.Precision.Max()).Limit
		}
	}
	return nil
}

func foreignRow(d *dataset.Dataset) error { return fmt.Errorf("%w: dataset %s", ErrForeignRow, d.Name) }
