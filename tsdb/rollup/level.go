package rollup

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/inside"
	"github.com/tidemark-go/tidemark/internal/instant"
	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/store/catalog"
	"github.com/tidemark-go/tidemark/internal/store/dataset"
	"github.com/tidemark-go/tidemark/internal/store/rowkey"
	"github.com/tidemark-go/tidemark/tsdb"
)

// level is one rollup of one tenant, with the finer rollup that it is computed from.
type level[T any] struct {
	*Rollup[T]
	repo   *tsdb.Repository[T]
	table  *bt.Table // through the tenant's view
	in     inside.Repository
	at     inside.Rollup
	source *level[T] // nil if computed from the points
	stored *catalog.Entry
	age    time.Duration // the most that the tenant's class allows; 0 for the rollup's own age
	fields fields
}

// levels returns the rollups of a repository's schema, each after the finer one it is computed from. If single is
// set, all their calls use the app profile of conditional writes.
func levels[T any](ctx context.Context, repo *tsdb.Repository[T], single bool) (out []*level[T], err error) {
	var route inside.Route
	if single {
		route = (*bt.Table).SingleCluster
	}
	repo = inside.Of(repo).Unlimited(route)
	in, err := inside.Of(repo).Internals()
	if err != nil {
		return nil, err
	}
	if err := in.Allow(ctx); err != nil {
		return nil, err
	}
	stored, err := in.Entry(ctx, in.D.Name)
	if err != nil {
		return nil, err
	}
	age, err := in.RollupAge(ctx)
	if err != nil {
		return nil, err
	}
	for _, r := range in.Rollups {
		def, ok := r.Definition.(*Rollup[T])
		if !ok {
			continue // of another type, which For does not accept
		}
		if single && def.readOnly {
			return nil, invalid.New(tsdb.ErrInvalid, "rollup", invalid.Quote(def.name), "a rollup from Define: one of the catalogue can only be read")
		}
		l := &level[T]{Rollup: def, repo: repo, table: in.View, in: in, at: r.Within(age), stored: &stored, age: age}
		l.setFields()
		for _, finer := range out {
			if finer.name == def.opts.From {
				l.source = finer
			}
		}
		out = append(out, l)
	}
	return out, nil
}

// path returns the path of an entity of the dataset.
func (l *level[T]) path(e tsdb.Entity) (string, error) {
	path := inside.Of(e).Path()
	return path, l.in.Space.CheckPath(path)
}

func entityAt(path string) tsdb.Entity { return inside.Of(tsdb.Entity{}).At(path) }

// span is the times from from to to in milliseconds, without to.
type span struct{ from, to int64 }

func (s span) empty() bool { return s.from >= s.to }

// rowOf returns the start of the row that contains ms.
func (l *level[T]) rowOf(ms int64) int64 { return l.entry.Row(ms) }

// oldest returns the time from which buckets are visible.
func (l *level[T]) oldest(now time.Time) int64 { return oldest(l.at, now) }

func oldest(r inside.Rollup, now time.Time) int64 {
	if !r.Bounded {
		return 0
	}
	return milli(now.Add(-r.Age))
}

// computable returns the time from which buckets can be computed. Earlier source data may have expired, or may expire
// during the read. It considers the declared policies, the stored ones and shorter former ones. For a finer rollup
// the shortest age of any class counts, because the tenant may have been in that class.
func (l *level[T]) computable(now time.Time) int64 {
	later := now.Add(l.table.Timeouts().Scan)
	if l.source != nil {
		return max(oldest(l.source.at.Within(l.in.D.ShortestRollupAge()), later), l.stored.CompleteFrom(l.source.entry.Class.Name, later))
	}
	return max(l.in.D.OldestUnexpired(later), l.stored.PointsCompleteFrom(later))
}

// replaceable returns the time from which stored buckets can be replaced: they must be visible and computable.
func (l *level[T]) replaceable(now time.Time) int64 { return max(l.computable(now), l.oldest(now)) }

// startOf and endOf return the start and the end of the bucket that contains ms. Times outside the calendar have no
// bucket.
func (l *level[T]) startOf(ms int64) int64 {
	return max(0, l.grid.Start(time.UnixMilli(ms)).UnixMilli())
}

func (l *level[T]) endOf(ms int64) int64 { return l.grid.Next(time.UnixMilli(ms)).UnixMilli() }

// maxMillis is the end of the last day on which a point may be.
var maxMillis = instant.Last.UnixMilli() + 1

// starts returns the starts, within s, of the buckets that slots overlap, ascending.
func (l *level[T]) starts(slots []span, s span) []int64 {
	var out []int64
	for _, slot := range slots {
		if slot.from >= maxMillis {
			continue
		}
		for start := l.startOf(slot.from); start < slot.to; start = l.endOf(start) {
			if start >= s.from && start < s.to {
				out = append(out, start)
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// marked is the content of one row of marks.
type marked struct {
	path  string
	row   int64 // start of the row
	slots []slot
}

// slot is a marked time span, and when it was marked.
type slot struct {
	span
	column string
	at     bigtable.Timestamp
}

// parseMarks parses a row of marks. It returns false for another program's row.
func (l *level[T]) parseMarks(row *bt.Row) (marked, bool) {
	path, start, ok := l.at.Marks.Split(row.Key())
	if !ok {
		return marked{}, false
	}
	m := marked{path: path, row: start}
	for _, item := range row.Family(dataset.MarkFamily) {
		column := item.Column[len(dataset.MarkFamily)+1:]
		i, err := strconv.ParseInt(column, 10, 64)
		if err != nil || i < 0 || i >= l.entry.Span/l.entry.Step {
			continue
		}
		from := l.entry.SlotStart(start, i)
		m.slots = append(m.slots, slot{span: span{from, from + l.entry.Step}, column: column, at: item.Timestamp})
	}
	return m, true
}

// rowsOf returns the range of an entity's rows in a space that overlap s. s must not be empty.
func (l *level[T]) rowsOf(space rowkey.Space, path string, s span) rowkey.Range {
	return space.Entity(path, l.rowOf(s.from), l.rowOf(s.to-1))
}

// scan calls visit with the rows of a range, after it has checked that each row belongs to it.
func (l *level[T]) scan(ctx context.Context, rng rowkey.Range, filter bigtable.Filter, limit int64, reverse bool, visit func(*bt.Row) (bool, error)) error {
	var failed error
	read := bt.Scan{Rows: bigtable.NewRange(rng.Start, rng.Limit), Filter: filter, Limit: limit, Reverse: reverse, Long: true}
	err := l.table.Read(ctx, read, func(row *bt.Row) bool {
		if key := row.Key(); key < rng.Start || key >= rng.Limit {
			failed = fmt.Errorf("%w: rollup %s", tsdb.ErrForeignRow, l.name)
			return false
		}
		var more bool
		more, failed = visit(row)
		return more && failed == nil
	})
	if failed != nil {
		return failed
	}
	return l.in.Explain(err)
}

// page calls visit with the first rows of a range, up to a limit, and returns the rest of the range.
func (l *level[T]) page(ctx context.Context, rng rowkey.Range, filter bigtable.Filter, limit int64, visit func(*bt.Row)) (rest rowkey.Range, err error) {
	rows, last := int64(0), ""
	err = l.scan(ctx, rng, filter, limit, false, func(row *bt.Row) (bool, error) {
		rows, last = rows+1, row.Key()
		visit(row)
		return true, nil
	})
	if rows == limit {
		rest = rng.After(last)
	}
	return rest, err
}
