package rollup

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/inside"
	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/rollupadd"
	"github.com/tidemark-go/tidemark/internal/telemetry"
	"github.com/tidemark-go/tidemark/tsdb"
)

// RebuildOptions select what Rebuild computes. The zero value selects all entities.
type RebuildOptions struct {
	// Prefix selects the entities to rebuild. The zero Prefix selects all.
	Prefix tsdb.Prefix
	// Resume continues after the entity whose Rebuilt had this Resume. Empty starts at the first entity.
	Resume string
	// OnEntity is called after each entity. If it returns an error, Rebuild stops and returns it. Nil disables it.
	OnEntity func(Rebuilt) error
	// AddersStopped confirms that no program adds to a rollup whose Mode is not Derived: nobody calls Add, and no
	// writer with a journal of its events runs or has events left to deliver. Rebuild needs this to replace the
	// rollup by the aggregates of the points. Added events that are not points are lost.
	AddersStopped bool
}

// Rebuilt reports an entity that Rebuild has finished.
type Rebuilt struct {
	Entity tsdb.Entity
	// Buckets is how many of its buckets differed from the stored ones.
	Buckets int
	// Resume is the value for RebuildOptions.Resume that continues after this entity.
	Resume string
}

// Rebuild recomputes the buckets that start in an interval from the points or from the finer rollup, and replaces
// those that differ. It returns how many differed. Use it after you declare a rollup over existing points, or after
// marks were lost. Programs may write points and workers may run during the rebuild of a derived rollup. Rebuild
// coarser rollups after it. If the interval starts where points have expired, the error matches tsdb.ErrExpired. An
// interval without a start begins at the oldest points that have not expired.
//
// Rebuild reads all points of the interval, entity by entity, each within the scan timeout. It stops when ctx ends;
// RebuildOptions.Resume continues it.
func (r *Reader[T]) Rebuild(ctx context.Context, in tsdb.Interval, opts RebuildOptions) (buckets int, err error) {
	ctx, op := r.begin(ctx, telemetry.RollupRebuild)
	defer func() { op.End(err) }()
	l, err := r.level(ctx, true)
	if err != nil {
		return 0, err
	}
	if l.opts.Mode != Derived && !opts.AddersStopped {
		return 0, fmt.Errorf("%w: stop all programs that add to %s, let every writer with a journal of its events deliver and close, "+
			"then set RebuildOptions.AddersStopped", rollupadd.ErrAdded, l.name)
	}
	if err := inside.Of(in).Check(); err != nil {
		return 0, err
	}
	s := l.spanOf(in)
	oldest := l.replaceable(l.in.Clock())
	if from, ok := in.Start(); ok && s.from < oldest {
		return 0, invalid.New(tsdb.ErrExpired, "start of the interval", from.UTC().String(), "a time within the retention of the rollup and of its source")
	}
	s.from, s.to = max(s.from, oldest), min(s.to, maxMillis)
	prefix := opts.Prefix
	if prefix == (tsdb.Prefix{}) {
		prefix = tsdb.AllEntities()
	}
	for e, err := range l.entities(ctx, prefix, opts.Resume) {
		if err != nil {
			return buckets, err
		}
		n, err := l.rebuild(ctx, e.Entity, s)
		buckets += n
		if err != nil {
			return buckets, fmt.Errorf("rollup %s: %w", l.name, err)
		}
		if e.Buckets = n; opts.OnEntity != nil {
			if err := opts.OnEntity(e); err != nil {
				return buckets, err
			}
		}
	}
	return buckets, ctx.Err()
}

// rebuild rebuilds one entity, row by row.
func (l *level[T]) rebuild(ctx context.Context, e tsdb.Entity, s span) (buckets int, err error) {
	path, err := l.path(e)
	if err != nil {
		return 0, err
	}
	ctx, cancel := l.table.Bound(ctx, true)
	defer cancel()
	for {
		if s.from = max(s.from, l.replaceable(l.in.Clock())); s.empty() {
			return buckets, nil
		}
		next, err := l.next(ctx, path, s)
		if err != nil || next < 0 {
			return buckets, err
		}
		end := min(l.rowOf(next)+l.entry.Span, s.to)
		changed, err := l.replaceAll(ctx, path, l.starts([]span{{next, end}}, span{next, end}))
		buckets += len(changed)
		if err != nil {
			return buckets, err
		}
		s.from = end
	}
}

// next returns the start of the first bucket in s that is stored or has source data; negative if there is no such
// bucket.
func (l *level[T]) next(ctx context.Context, path string, s span) (int64, error) {
	first := int64(math.MaxInt64)
	filter := bigtable.ChainFilters(l.layout.cells, bigtable.TimestampRangeFilterMicros(bigtable.Timestamp(s.from*1000), bigtable.Timestamp(s.to*1000)))
	err := l.scan(ctx, l.rowsOf(l.at.Rows, path, s), filter, 1, true, func(row *bt.Row) (bool, error) {
		buckets, err := l.layout.stored(row)
		if len(buckets) > 0 {
			first = buckets[0].start
		}
		return false, err
	})
	if err != nil {
		return 0, err
	}
	something, err := l.first(ctx, path, s)
	if err != nil {
		return 0, err
	}
	first = min(first, something)
	if first >= s.to {
		return -1, nil
	}
	return first, nil
}

// first returns the start of the first bucket that starts in s and has source data, or math.MaxInt64 if none has.
func (l *level[T]) first(ctx context.Context, path string, s span) (int64, error) {
	if l.startOf(s.from) < s.from {
		s.from = l.endOf(s.from)
	}
	s.to = l.endOf(s.to - 1)
	first := int64(math.MaxInt64)
	if s.empty() {
		return first, nil
	}
	if l.source != nil {
		err := l.source.read(ctx, path, s, false, func(b bucket) (bool, error) {
			first = l.startOf(b.start)
			return false, nil
		})
		return first, err
	}
	in := tsdb.Between(time.UnixMilli(s.from), time.UnixMilli(s.to))
	for p, err := range l.repo.Range(ctx, entityAt(path), in, tsdb.OldestFirst, tsdb.Limit(1)) {
		bad, undecoded := errors.AsType[*tsdb.PointError](err)
		switch {
		case undecoded:
			p.Time = bad.Time
		case err != nil:
			return 0, err
		}
		first = l.startOf(p.Time.UnixMilli())
	}
	return first, nil
}
