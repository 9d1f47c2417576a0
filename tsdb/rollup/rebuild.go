package rollup

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/internal/errtype"
	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/telemetry"
	"github.com/tidemark-go/tidemark/tsdb"
)

// ErrAdded is returned by Rebuild for a rollup that events are added to.
var ErrAdded = errtype.New("rollup.ErrAdded", "rollup: events are added to it")

// RebuildOptions say what is rebuilt. The zero value is all entities.
type RebuildOptions struct {
	// Prefix is below which entities are rebuilt. The zero Prefix is all of them.
	Prefix tsdb.Prefix
	// Resume continues a rebuild behind the entity with which an earlier one has said it. Empty begins.
	Resume string
	// OnEntity is told of each entity that is done. Its error ends the rebuild, and is returned. Nil is for nobody.
	OnEntity func(Rebuilt) error
	// AddersStopped says that nothing is being added to a rollup whose Mode is not Derived: no writer with a journal of its
	// events runs or will deliver some that it still has, and nobody calls Add. Only then can it be replaced by what the
	// points come to; what was added of events that are no points is lost.
	AddersStopped bool
}

// Rebuilt is an entity that a rebuild is done with.
type Rebuilt struct {
	Entity tsdb.Entity
	// Buckets is how many of its buckets were not what was stored.
	Buckets int
	// Resume is what RebuildOptions.Resume takes to go on behind it.
	Resume string
}

// Rebuild computes the buckets that start in an interval anew, from the points or from the finer rollup, and replaces those
// that differ: for a rollup that was added to a schema that has points, or whose marks were lost. It returns how many
// differed. A rollup that is derived may be written to, and be worked on, meanwhile; coarser ones are to be rebuilt
// after it. An interval that begins where points have expired is refused with tsdb.ErrExpired; one without a start begins with
// what has not.
//
// It reads all points of the interval, entity by entity, each within the timeout of scans. It ends with ctx, and can be
// continued by RebuildOptions.Resume.
func (r *Reader[T]) Rebuild(ctx context.Context, in tsdb.Interval, opts RebuildOptions) (buckets int, err error) {
	ctx, op := r.begin(ctx, telemetry.RollupRebuild)
	defer func() { op.End(err) }()
	l, err := r.level(ctx, true)
	if err != nil {
		return 0, err
	}
	if l.opts.Mode != Derived && !opts.AddersStopped {
		return 0, fmt.Errorf("%w: %s is replaced by what its points come to only when every writer with a journal of its events has delivered and ended, "+
			"nobody adds, and RebuildOptions.AddersStopped says so", ErrAdded, l.name)
	}
	if err := in.Check(); err != nil {
		return 0, err
	}
	s := l.spanOf(in)
	oldest := l.replaceable(l.in.Store.Clock())
	if from, ok := in.Start(); ok && s.from < oldest {
		return 0, invalid.New(tsdb.ErrExpired, "start of the interval", from.UTC().String(), "what the rollup's source and its own class keep")
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
		if s.from = max(s.from, l.replaceable(l.in.Store.Clock())); s.empty() {
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

// next returns the start of the first bucket in s that is stored or has something to hold; negative for none.
func (l *level[T]) next(ctx context.Context, path string, s span) (int64, error) {
	first := int64(math.MaxInt64)
	filter := bigtable.ChainFilters(l.layout.cells, bigtable.TimestampRangeFilterMicros(bigtable.Timestamp(s.from*1000), bigtable.Timestamp(s.to*1000)))
	err := l.scan(ctx, l.rowsOf(l.at.Rows, path, s), filter, 1, true, func(row bigtable.Row) (bool, error) {
		buckets, err := l.layout.stored(row, len(l.measures))
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

// first returns the start of the first bucket that starts in s and has something to hold; the largest number for none.
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
