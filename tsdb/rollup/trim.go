package rollup

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/store/rowkey"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
)

const (
	// trimEvery is how often a worker looks for expired buckets of a tenant. Each look scans the tenant's rollups in
	// the service.
	trimEvery = 24 * time.Hour
	// trimAgain is when a worker looks again after an error.
	trimAgain = time.Hour
	// trimPage is how many rows with expired buckets are read, and written, at once.
	trimPage = 500
	// trimCells is how many cells of a row are read: more than there are columns of buckets, without those of sketches.
	trimCells = 300
)

// trims deletes expired buckets of tenants whose class sets an age for rollups. Garbage collection cannot do it: all
// tenants share the column families of a rollup.
func (w *Worker) trims(ctx context.Context, ids []tenant.ID, p *pass) {
	var jobs []job
	for _, j := range w.jobs {
		if j.ages() {
			jobs = append(jobs, j)
		}
	}
	if len(jobs) == 0 {
		return
	}
	now := w.in.Clock()
	w.mu.Lock()
	next := make(map[tenant.ID]time.Time, len(ids)) // without tenants that are gone
	var due []tenant.ID
	for _, id := range ids {
		if at, ok := w.trimAt[id]; ok && now.Before(at) && at.Sub(now) <= trimEvery {
			next[id] = at
			continue
		}
		next[id] = now.Add(trimEvery)
		due = append(due, id)
	}
	w.trimAt = next
	w.mu.Unlock()
	bt.AtOnce(w.opts.Concurrency, len(due), func(i int) {
		for _, j := range jobs {
			if ctx.Err() == nil && w.trim(ctx, j, due[i], p) {
				continue
			}
			w.mu.Lock()
			w.trimAt[due[i]] = now.Add(trimAgain)
			w.mu.Unlock()
		}
	})
}

// trim reports whether it has deleted everything that has expired.
func (w *Worker) trim(ctx context.Context, j job, id tenant.ID, p *pass) bool {
	rows, err := j.trim(tenant.NewContext(ctx, id), w.store, id)
	p.count(func(p *Pass) { p.Trimmed += rows })
	if err == nil || errors.Is(err, tsdb.ErrErased) { // the erasure takes all its rows
		return true
	}
	if ctx.Err() == nil {
		p.fail(fmt.Errorf("rollup: delete expired buckets of tenant %s, dataset %s: %w", id, j.Name(), err))
	}
	return false
}

// ages reports whether a class of the schema sets an age for rollups.
func (j jobOf[T]) ages() bool { return j.shape.ShortestRollupAge() > 0 }

// trim deletes the tenant's buckets that are older than its class allows, and returns the number of changed rows.
func (j jobOf[T]) trim(ctx context.Context, store *tsdb.Store, id tenant.ID) (rows int, err error) {
	all, err := levels(ctx, j.For(store, id), true)
	if err != nil {
		return 0, err
	}
	for _, l := range all {
		if l.age == 0 || l.at.Age < l.age {
			continue // garbage collection does it
		}
		for _, rng := range l.at.Rows.Under("") {
			for !rng.Empty() {
				var n int
				if n, rng, err = l.trimPage(ctx, rng); err != nil {
					return rows, err
				}
				rows += n
			}
		}
	}
	return rows, nil
}

// trimPage deletes expired cells in the first rows of a range that have any, and returns the rest of the range.
func (l *level[T]) trimPage(ctx context.Context, rng rowkey.Range) (rows int, next rowkey.Range, err error) {
	now, err := l.in.Service.Confirmed(ctx)
	if err != nil {
		return 0, next, err
	}
	oldest := l.oldest(now)
	if oldest <= 0 { // an age that reaches before 1970; a range that ends at 0 would have no end
		return 0, next, nil
	}
	cutoff := bigtable.Timestamp(oldest * 1000)
	filter := bigtable.ChainFilters(
		bigtable.FamilyFilter(regexp.QuoteMeta(l.entry.Class.Name)+`\.[snxc]`),
		bigtable.TimestampRangeFilterMicros(0, cutoff),
		bigtable.LatestNFilter(1),
		bigtable.CellsPerRowLimitFilter(trimCells+maxBuckets*len(l.layout.sketches)),
		bigtable.StripValueFilter(),
	)
	var entries []bt.Entry
	next, err = l.page(ctx, rng, filter, trimPage, func(row *bt.Row) {
		if _, start, ok := l.at.Rows.Split(row.Key()); ok {
			entries = append(entries, l.trimming(row, start+l.entry.Span <= oldest, cutoff))
		}
	})
	if err != nil || len(entries) == 0 {
		return 0, next, err
	}
	if err := l.in.Allow(ctx); err != nil {
		return 0, next, err
	}
	for _, out := range l.table.Bulk(ctx, entries) {
		if out.State == bt.Stored {
			rows++
		} else if err == nil {
			err = l.in.Explain(out.Err)
		}
	}
	return rows, next, err
}

// trimming returns the entry that deletes the cells of a row older than cutoff, or the whole row if all its buckets
// are older.
func (l *level[T]) trimming(row *bt.Row, whole bool, cutoff bigtable.Timestamp) bt.Entry {
	e := bt.Entry{Key: row.Key(), Mutation: bigtable.NewMutation()}
	if whole {
		e.Mutation.DeleteRow()
		e.Mutations++
		return e
	}
	for family, items := range row.Families() {
		for _, item := range items {
			e.Mutation.DeleteTimestampRange(family, strings.TrimPrefix(item.Column, family+":"), 0, cutoff)
			e.Mutations++
		}
	}
	return e
}
