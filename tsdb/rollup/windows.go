package rollup

import (
	"context"
	"iter"
	"slices"
	"time"

	"github.com/tidemark-go/tidemark/internal/inside"
	"github.com/tidemark-go/tidemark/internal/store/nest"
	"github.com/tidemark-go/tidemark/internal/telemetry"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

// source is how package window reads a rollup.
type source[T any] struct{ rollup *Rollup[T] }

// Keeps reports whether the rollup keeps what the aggregator computes.
func (s source[T]) Keeps(by *window.Aggregator[T]) (widest time.Duration, ok bool) {
	if s.rollup.keeping(askedOf(by, tsdb.Interval{})) == nil {
		return 0, false
	}
	return s.rollup.widest(), true
}

// Divides reports whether buckets of the aggregator consist of those of the rollup.
func (s source[T]) Divides(by *window.Aggregator[T], in tsdb.Interval) bool {
	return s.rollup.divides(askedOf(by, in))
}

// Windows returns the buckets of the aggregator.
func (s source[T]) Windows(
	ctx context.Context, repo *tsdb.Repository[T], by *window.Aggregator[T], e tsdb.Entity, in tsdb.Interval, order tsdb.Order,
) iter.Seq2[window.Bucket, error] {
	return newWindowing(s.rollup, askedOf(by, in)).sequence(ctx, For(s.rollup, repo), e, order)
}

// Buckets returns the buckets of the rollup, oldest first.
func (s source[T]) Buckets(ctx context.Context, repo *tsdb.Repository[T], e tsdb.Entity, in tsdb.Interval) iter.Seq2[window.Bucket, error] {
	return For(s.rollup, repo).Buckets(ctx, e, in, tsdb.OldestFirst)
}

// asked is what windows are asked for.
type asked[T any] struct {
	grid       window.Grid
	opts       window.Options
	measures   []window.Measure[T]
	in         tsdb.Interval
	start, end time.Time
}

func askedOf[T any](by *window.Aggregator[T], in tsdb.Interval) *asked[T] {
	a := &asked[T]{in: in}
	a.grid, a.opts, a.measures = inside.Of(by).Aggregation()
	a.start, _ = in.Start()
	a.end, _ = in.End()
	return a
}

// keeping returns for each measure of the aggregator its number in the rollup, or nil if the rollup does not keep one
// of them.
func (r *Rollup[T]) keeping(a *asked[T]) []int {
	out := make([]int, len(a.measures))
	for i, of := range a.measures { // each measure keeps its count
		needed := of.Aggregates
		if a.opts.Gaps == window.Previous || a.opts.Gaps == window.Linear {
			needed |= window.Ends
		}
		out[i] = slices.IndexFunc(r.measures, func(m Measure[T]) bool {
			return m.Name == of.Name && m.Kind == of.Kind && needed&^(m.Aggregates|window.Count) == 0 && !m.Added && of.MaxDip == 0 &&
				(needed&window.Integral == 0 || m.Linear == of.Linear && m.MaxGap == of.MaxGap && (!of.Hold || of.MaxGap == 0))
		})
		if out[i] < 0 {
			return nil
		}
	}
	return out
}

// mostCompared is how many buckets of a grid are compared one by one with those of a rollup. For more, samples are
// cheaper.
const mostCompared = 5000

// divides reports whether the interval, and each bucket of the grid in it, starts and ends where buckets of the rollup
// do.
func (r *Rollup[T]) divides(a *asked[T]) bool {
	begins := func(t time.Time) bool { return r.grid.Start(t).Equal(t) }
	if !begins(a.start) || !begins(a.end) || widthOf(a.grid) == tooWide && a.end.Sub(a.grid.Start(a.start)) == tooWide {
		return false
	}
	at := a.start
	for range mostCompared {
		next := a.grid.Next(at)
		if !next.After(at) { // outside of the calendar
			return false
		}
		if at = next; !at.Before(a.end) {
			return true
		}
		if !begins(at) {
			return false
		}
	}
	_, ok := nest.Nested(r.grid, a.grid)
	return ok
}

// windowing merges the buckets of a rollup into those of another grid.
type windowing[T any] struct {
	rollup *Rollup[T] // what is asked for: the grid, and the measures with the aggregates asked for
	from   []int
	asked  *asked[T]
}

func newWindowing[T any](def *Rollup[T], a *asked[T]) windowing[T] {
	w := windowing[T]{rollup: &Rollup[T]{name: def.name, grid: a.grid}, from: def.keeping(a), asked: a}
	w.rollup.entry.Late = def.entry.Late
	for i, k := range w.from {
		m := def.measures[k]
		m.Aggregates = a.measures[i].Aggregates
		w.rollup.measures = append(w.rollup.measures, m)
	}
	return w
}

// pick returns a bucket of the rollup with the measures that are asked for.
func (w windowing[T]) pick(b bucket) bucket {
	values := make([]sums, len(w.from))
	for i, k := range w.from {
		values[i] = b.values[k]
		values[i].missing &= w.rollup.measures[i].Aggregates | window.Count
		if !w.rollup.measures[i].has(window.Quantiles) {
			values[i].sketch = nil
		}
	}
	b.values = values
	if b.stored != nil {
		stored := w.pick(*b.stored)
		b.stored = &stored
	}
	return b
}

// sequence returns the buckets of the grid.
func (w windowing[T]) sequence(ctx context.Context, r *Reader[T], e tsdb.Entity, order tsdb.Order) iter.Seq2[window.Bucket, error] {
	return sequence(ctx, r, telemetry.RollupBuckets, func(ctx context.Context, yield func(window.Bucket, error) bool) error {
		l, err := r.level(ctx, false)
		if err != nil {
			return err
		}
		path, err := l.path(e)
		if err != nil {
			return err
		}
		ctx, cancel := l.table.Bound(ctx, true)
		defer cancel()
		if !slices.ContainsFunc(w.rollup.measures, func(m Measure[T]) bool { return m.has(window.Quantiles) }) {
			l = l.withoutSketches()
		}
		alone := visited(func(visit func(window.Bucket) bool) error {
			return w.merged(ctx, l, path, order == tsdb.NewestFirst, visit)
		})
		measures := w.rollup.inWindows()
		for i := range measures {
			measures[i].Hold = w.asked.measures[i].Hold
		}
		ends := func(before bool, needed []bool) ([]inside.JoinNumber, error) {
			return l.nearest(ctx, path, w.asked.in, before, needed, w.pick)
		}
		inside.Of[*window.Aggregator[T]](nil).Join(alone, w.rollup.grid, w.asked.in, order, w.asked.opts, measures, ends)(yield)
		return nil
	})
}

// merged visits the buckets of the grid that are not empty, in order. They know only their own numbers.
func (w windowing[T]) merged(ctx context.Context, l *level[T], path string, newest bool, visit func(window.Bucket) bool) error {
	now := l.in.Clock().UnixMilli()
	var current bucket
	end := int64(-1) // of the current bucket; -1 if there is none
	flush := func() bool { return end < 0 || visit(w.rollup.public(&current, now)) }
	err := l.read(ctx, path, l.spanOf(w.asked.in), newest, func(b bucket) (bool, error) {
		if end < 0 || b.start < current.start || b.start >= end {
			if !flush() {
				return false, nil
			}
			start := w.rollup.grid.Start(time.UnixMilli(b.start))
			next := w.rollup.grid.Next(start)
			current = bucket{start: max(0, start.UnixMilli()), values: make([]sums, len(w.rollup.measures))}
			end = next.UnixMilli()
		}
		later := w.pick(b)
		if newest { // the merged bucket is later than b
			first := bucket{start: current.start, values: make([]sums, len(w.rollup.measures))}
			w.rollup.merge(&first, later)
			current, later = first, current
		}
		w.rollup.merge(&current, later)
		return true, nil
	})
	if err == nil {
		flush()
	}
	return err
}

// withoutSketches returns the level without its sketches, which are then neither read nor decoded.
func (l *level[T]) withoutSketches() *level[T] {
	bare := *l
	bare.Rollup = l.bare()
	if l.source != nil {
		bare.source = l.source.withoutSketches()
	}
	return &bare
}

// barely returns the rollup without the sketches of its measures, for reads.
func (r *Rollup[T]) barely() *Rollup[T] {
	if len(r.layout.sketches) == 0 {
		return r
	}
	bare := *r
	bare.measures = slices.Clone(r.measures)
	for i := range bare.measures {
		bare.measures[i].Aggregates &^= window.Quantiles
	}
	bare.layout = newLayout(r.opts.Retention.Name, bare.measures, true)
	return &bare
}
