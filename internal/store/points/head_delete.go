package points

import (
	"context"
	"fmt"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/store/dataset"
	"github.com/tidemark-go/tidemark/internal/store/rowkey"
)

// deletePoint deletes one point of a dataset with heads. It deletes the point's row first: a repair of the head that
// runs at the same time copies points from their rows, so it can restore the point only while its row exists.
func (r *Rows) deletePoint(ctx context.Context, path string, units int64) bt.Outcome {
	ctx, cancel := r.View.Bound(ctx, true)
	defer cancel()
	cell := r.cellOf(units)
	m := dataset.NewHeadMutation()
	m.Clear(r.D.HeadColumns, cell, dataset.After(cell))
	if r.D.Head.Only {
		row, err := r.versions(ctx, path, units, units)
		if err != nil {
			return bt.Outcome{State: bt.Rejected, Err: err}
		}
		m.ClearUnread(r.D, row, units, units)
		return r.Explained(r.View.Apply(ctx, r.headKey(path), m.Mutation))
	}
	point := r.Delete(ctx, r.removalOf(r.Key(path, units, ""), units))
	if point.State != bt.Stored {
		return r.Explained(point)
	}
	head := bt.Outcome{State: bt.Stored}
	if err := r.clearFields(ctx, path, &m, units, units); err != nil {
		head = bt.Outcome{State: bt.Unknown, Err: err}
	} else if m.Count > 0 {
		head = r.View.Apply(ctx, r.headKey(path), m.Mutation)
	}
	o := r.Explained(combineOutcomes(point, head))
	if o.State != bt.Stored {
		return o
	}
	if err := r.repairHead(ctx, path, units, units); err != nil {
		return bt.Outcome{State: bt.Unknown, Attempts: o.Attempts, Err: err}
	}
	return o
}

// deleteSpan is DeleteSpan for a dataset with heads.
func (r *Rows) deleteSpan(ctx context.Context, path string, oldest, newest int64) (out Deletions) {
	ctx, cancel := r.View.Bound(ctx, true)
	defer cancel()
	key := r.headKey(path)
	var row *bt.Row
	if r.D.Head.Only {
		row, out.Err = r.versions(ctx, path, oldest, newest)
		out.Deleted = r.timesIn(row)
	} else {
		out = r.deleteRows(ctx, r.Space.Entity(path, oldest, newest))
	}
	if out.Err != nil {
		return out
	}
	m := dataset.NewHeadMutation()
	if oldest == 0 && newest == r.D.Precision.Max() && !r.D.Head.Fields {
		m.Mutation = r.deletion(r.D.HeadClasses)
		m.Count++
	} else {
		m.Clear(r.D.HeadColumns, r.cellOf(oldest), dataset.After(r.cellOf(newest)))
		m.ClearUnread(r.D, row, oldest, newest)
	}
	if err := r.clearFields(ctx, path, &m, oldest, newest); err != nil {
		out.Err = headError(path, err)
		return out
	}
	head := bt.Outcome{State: bt.Stored}
	if m.Count > 0 {
		head = r.Explained(r.View.Apply(ctx, key, m.Mutation))
	}
	switch {
	case r.D.Head.Only && head.State != bt.Stored:
		return Deletions{Head: &head}
	case r.D.Head.Only:
	case head.State != bt.Stored:
		out.Err = headError(path, head.Err)
	default:
		out.Err = r.repairHead(ctx, path, oldest, newest)
	}
	return out
}

func headError(path string, err error) error {
	return fmt.Errorf("tsdb: points of %s are deleted, its head may be out of date (deleting again repairs it): %w", path, err)
}

// versions returns what a head row holds between two times, without payloads, but expired and uncollected points too.
func (r *Rows) versions(ctx context.Context, path string, oldest, newest int64) (*bt.Row, error) {
	from, to := r.cellOf(oldest), dataset.After(r.cellOf(newest))
	filter := bigtable.ChainFilters(bigtable.TimestampRangeFilterMicros(from, to), bigtable.StripValueFilter())
	row, err := r.View.Row(ctx, r.headKey(path), filter)
	return row, r.Explain(err)
}

// timesIn returns how many points a head row holds.
func (r *Rows) timesIn(row *bt.Row) int {
	times := map[bigtable.Timestamp]bool{}
	for i := range r.D.HeadClasses {
		for _, item := range row.Family(r.D.HeadClasses[i].Name) {
			times[item.Timestamp] = true
		}
	}
	return len(times)
}

// deleteUnder is DeleteUnder for a dataset with heads. After points and heads are deleted, it writes the heads again of
// entities that still have points: those that were written meanwhile or could not be deleted.
func (r *Rows) deleteUnder(ctx context.Context, path string) (out Deletions) {
	ctx, cancel := r.View.Bound(ctx, true)
	defer cancel()
	if r.D.Head.Only {
		if out.Deleted, out.Err = r.deleteHeads(ctx, r.Heads.Under(path), &out.Points); out.Err != nil {
			out.Points = Report{}
		}
		return out
	}
	out = r.deleteRows(ctx, r.Space.Under(path)...)
	if out.Err != nil {
		return out
	}
	if _, out.Err = r.deleteHeads(ctx, r.Heads.Under(path), &out.Heads); out.Err == nil && !out.Heads.GaveUp {
		out.Err = r.repairHeadsUnder(ctx, path)
	}
	return out
}

// deleteHeads deletes the head rows in ranges page by page, and returns how many points they held.
func (r *Rows) deleteHeads(ctx context.Context, ranges []rowkey.Range, report *Report) (deleted int, err error) {
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

// headRow is a head row to delete.
type headRow struct {
	key    string
	path   string
	points int
}

// headPage reads the first heads in rng, and returns the rest of rng. In a dataset that keeps heads only, it also
// counts the points in them.
func (r *Rows) headPage(ctx context.Context, rng rowkey.Range) (page []headRow, next rowkey.Range, err error) {
	filter := bt.KeysOnly()
	if r.D.Head.Only {
		filter = bigtable.StripValueFilter()
	}
	next, err = r.firstRows(ctx, rng, filter, func(row *bt.Row) {
		if path, ok := r.Heads.SplitEntity(row.Key()); ok {
			page = append(page, headRow{key: row.Key(), path: path, points: r.timesIn(row)})
		}
	})
	return page, next, err
}

// deleteHeadPage deletes heads, and adds those that could not be deleted to the report. It returns the number of
// deleted heads and of the points in them.
func (r *Rows) deleteHeadPage(ctx context.Context, page []headRow, report *Report) (rows, points int) {
	entries, families := make([]bt.Entry, len(page)), r.D.HeadFamilies()
	for i, row := range page {
		entries[i] = bt.Entry{Key: row.key, Mutation: r.deletion(families), Mutations: len(families)}
	}
	for i, out := range r.View.Bulk(ctx, entries) {
		if out.State == bt.Stored {
			rows++
			points += page[i].points
			continue
		}
		out = r.Explained(out)
		out.Err = fmt.Errorf("tsdb: head of %s: %w", page[i].path, out.Err)
		report.Failed = append(report.Failed, Failure{Index: report.Total + i, Outcome: out})
	}
	report.Total += len(page)
	return rows, points
}

// repairHeadsUnder repairs the heads of all entities below a prefix that still have points.
func (r *Rows) repairHeadsUnder(ctx context.Context, path string) error {
	for _, rng := range r.Space.Under(path) {
		for !rng.Empty() {
			found := ""
			read := bt.Scan{Rows: bigtable.NewRange(rng.Start, rng.Limit), Filter: bt.KeysOnly(), Limit: 1, Long: true}
			for row, err := range r.View.Rows(ctx, read) {
				if err != nil {
					return r.Explain(err)
				}
				found = row.Key()
			}
			if found == "" {
				break
			}
			if found < rng.Start || found >= rng.Limit {
				return ForeignRow(r.D)
			}
			of, _, ok := r.Space.Split(found)
			if !ok {
				rng = rng.After(found)
				continue
			}
			if err := r.markFields(ctx, of); err != nil {
				return headError(of, err)
			}
			if err := r.repairHead(ctx, of, 0, r.D.Precision.Max()); err != nil {
				return err
			}
			rng.Start = r.Space.Entity(of, 0, r.D.Precision.Max()).Limit
		}
	}
	return nil
}

// ForeignRow returns the error for a row outside the requested range.
func ForeignRow(d *dataset.Dataset) error {
	return fmt.Errorf("%w: dataset %s", bt.ErrForeignRow, d.Name)
}
