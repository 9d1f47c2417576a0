package rollup

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/inside"
	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/store/rowkey"
	"github.com/tidemark-go/tidemark/internal/telemetry"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

// Reader reads the buckets of a rollup for one tenant. It holds no resources and is safe for concurrent use. You may
// make a new one for each request.
//
// An interval selects the buckets that start in it, each of them whole. Expired buckets are never visible. A read of a
// derived rollup computes marked buckets from the points or from the finer rollup. So the result always equals that of
// the points, but for writes of unknown outcome, as the package's comment says; only the cost depends on how far
// workers have come. If some or all points of a bucket have expired, the bucket stays as it was stored. To know that,
// the store reads the catalogue's entry of the dataset at most once a minute while its rollups are used.
type Reader[T any] struct {
	readerGate[T]
	rollup *Rollup[T]
	repo   *tsdb.Repository[T]
	gaps   window.Options
}

// For returns the reader of a rollup for the tenant of a repository. It does no I/O and cannot fail: if the rollup is
// not in the repository's schema, each call on the reader returns the error.
func For[T any](r *Rollup[T], repo *tsdb.Repository[T]) *Reader[T] {
	return &Reader[T]{rollup: r, repo: repo}
}

// level returns the level to read. If single is set, it is also for writing.
func (r *Reader[T]) level(ctx context.Context, single bool) (*level[T], error) {
	if r == nil || r.rollup == nil || r.repo == nil {
		return nil, invalid.New(tsdb.ErrInvalid, "reader", "the zero value", "a reader from For")
	}
	all, err := levels(ctx, r.repo, single)
	if err != nil {
		return nil, err
	}
	for _, l := range all {
		if l.Rollup == r.rollup {
			return l, nil
		}
	}
	return nil, invalid.New(tsdb.ErrInvalid, "rollup", invalid.Quote(r.rollup.name), "a rollup in SchemaOptions.Rollups of the repository's schema")
}

// WithGaps returns a reader whose Buckets and Many fill gaps as package window does. The zero Options leave gaps out,
// as For does. Gaps at the edges of the interval are filled from the buckets outside of it only for measures that keep
// window.Ends.
func (r *Reader[T]) WithGaps(opts window.Options) *Reader[T] {
	if r == nil {
		return nil
	}
	filled := *r
	filled.gaps = opts
	return &filled
}

// Buckets returns an iterator over the buckets of an entity that start in an interval, newest first or in another
// tsdb.Order. Each loop over it reads from the table; leaving the loop ends the read. An error is the last pair.
//
// It costs a request for the row of marks, one more for each rollup that this one is derived from, and one for the
// stored buckets. Each run of marked buckets costs a read of points. Buckets accepts and
// ignores a tsdb.Concurrency, a tsdb.Hedge and a tsdb.MaxStale. The scan timeout bounds the whole loop,
// including the time that the loop's body takes.
func (r *Reader[T]) Buckets(ctx context.Context, e tsdb.Entity, in tsdb.Interval, opts ...tsdb.ReadOption) iter.Seq2[window.Bucket, error] {
	return sequence(ctx, r, telemetry.RollupBuckets, func(ctx context.Context, yield func(window.Bucket, error) bool) error {
		order, _, err := inside.Of(in).ReadOptions(opts)
		if err != nil {
			return err
		}
		l, err := r.level(ctx, false)
		if err != nil {
			return err
		}
		ctx, cancel := l.table.Bound(ctx, true)
		defer cancel()
		r.buckets(ctx, l, e, in, order, r.gaps)(yield)
		return nil
	})
}

// sequence returns what read yields, as an operation. An error of read is the last pair.
func sequence[T, V any](ctx context.Context, r *Reader[T], name telemetry.Name, read func(context.Context, func(V, error) bool) error) iter.Seq2[V, error] {
	return func(yield func(V, error) bool) {
		ctx, op := r.begin(ctx, name)
		var failed error
		defer func() { op.End(failed) }()
		stopped := false
		emit := func(v V, err error) bool {
			if failed = err; err == nil {
				op.Returned(1)
			}
			stopped = !yield(v, err)
			return !stopped
		}
		if err := read(ctx, emit); err != nil && !stopped {
			var none V
			emit(none, err)
		}
	}
}

func (r *Reader[T]) buckets(ctx context.Context, l *level[T], e tsdb.Entity, in tsdb.Interval, order tsdb.Order, opts window.Options) iter.Seq2[window.Bucket, error] {
	stored := l.each(ctx, e, in, order)
	if opts.Gaps == window.LeaveOut && !l.joins() || inside.Of(in).Check() != nil {
		return stored
	}
	return l.joined(ctx, e, in, order, stored, opts)
}

// begin starts an operation.
func (r *Reader[T]) begin(ctx context.Context, name telemetry.Name) (context.Context, *telemetry.Op) {
	if r == nil {
		return ctx, nil
	}
	return inside.Of(r.repo).Begin(ctx, name, 0, false)
}

// each returns the buckets of an entity that start in an interval. They know only their own numbers.
func (l *level[T]) each(ctx context.Context, e tsdb.Entity, in tsdb.Interval, order tsdb.Order) iter.Seq2[window.Bucket, error] {
	return visited(func(visit func(window.Bucket) bool) error {
		path, err := l.path(e)
		switch {
		case order != tsdb.NewestFirst && order != tsdb.OldestFirst:
			err = invalid.New(tsdb.ErrInvalid, "order", strconv.Itoa(int(order)), "NewestFirst or OldestFirst")
		case inside.Of(in).Check() != nil:
			err = inside.Of(in).Check()
		}
		if err != nil {
			return err
		}
		now := l.in.Clock().UnixMilli()
		return l.read(ctx, path, l.spanOf(in), order == tsdb.NewestFirst, func(b bucket) (bool, error) {
			return visit(l.public(&b, now)), nil
		})
	})
}

// visited returns the buckets with which read calls visit. An error of read is the last pair.
func visited(read func(visit func(window.Bucket) bool) error) iter.Seq2[window.Bucket, error] {
	return func(yield func(window.Bucket, error) bool) {
		stopped := false
		err := read(func(b window.Bucket) bool {
			stopped = !yield(b, nil)
			return !stopped
		})
		if err != nil && !stopped {
			yield(window.Bucket{}, err)
		}
	}
}

// spanOf returns the span of the starts of the buckets that start in an interval. The bucket that contains 1970-01-01
// may start before it, but has start 0 in all rows.
func (r *Rollup[T]) spanOf(in tsdb.Interval) span {
	edge := func(t time.Time) int64 {
		switch epoch := time.Unix(0, 0); {
		case !t.After(r.grid.Start(epoch)):
			return 0
		case !t.After(epoch):
			return 1
		}
		return milli(t)
	}
	s := span{0, math.MaxInt64}
	if from, ok := in.Start(); ok {
		s.from = edge(from)
	}
	if to, ok := in.End(); ok {
		s.to = edge(to)
	}
	return s
}

// milli returns t in milliseconds, rounded up and limited to the calendar of grids.
func milli(t time.Time) int64 {
	if ms, ok := rowkey.Milliseconds.AtOrAfter(t); ok {
		return min(ms, maxMillis)
	}
	return maxMillis
}

// whole returns the interval that the buckets starting in an interval cover.
func (r *Rollup[T]) whole(in tsdb.Interval) tsdb.Interval {
	from, hasFrom := in.Start()
	to, hasTo := in.End()
	edge := func(t time.Time) time.Time {
		if r.grid.Start(t).Equal(t) {
			return t
		}
		return r.grid.Next(t)
	}
	switch {
	case hasFrom && hasTo:
		return tsdb.Between(edge(from), edge(to))
	case hasFrom:
		return tsdb.Since(edge(from))
	case hasTo:
		return tsdb.Until(edge(to))
	}
	return tsdb.AllTime()
}

// Latest returns the n newest buckets of an entity that are not empty, newest first. It returns fewer if there are
// fewer, and none without an error. It costs as much as Buckets for the time span that it reads. For measures with
// Delta, Increase or Integral that is up to the numbers before the n buckets, at most 1,000 buckets more; a number that
// is even further away counts as missing.
func (r *Reader[T]) Latest(ctx context.Context, e tsdb.Entity, n int) (out []window.Bucket, err error) {
	ctx, op := r.begin(ctx, telemetry.RollupLatest)
	defer func() {
		op.Returned(len(out))
		op.End(err)
	}()
	if n < 0 {
		return nil, invalid.New(tsdb.ErrInvalid, "n", strconv.Itoa(n), "0 or more")
	}
	l, err := r.level(ctx, false)
	if err != nil || n == 0 {
		return nil, err
	}
	ctx, cancel := l.table.Bound(ctx, true)
	defer cancel()
	most := min(n, math.MaxInt-farBuckets) + farBuckets
	stored := func(yield func(window.Bucket, error) bool) {
		read := 0
		for b, err := range l.each(ctx, e, tsdb.AllTime(), tsdb.NewestFirst) {
			read++
			if !yield(b, err) || read == most {
				return
			}
		}
	}
	seq := iter.Seq2[window.Bucket, error](stored)
	if l.joins() {
		seq = l.joined(ctx, e, tsdb.AllTime(), tsdb.NewestFirst, seq, window.Options{MaxFilled: most})
	}
	for b, err := range seq {
		if err != nil {
			return nil, err
		}
		if out = append(out, b); len(out) == n {
			break
		}
	}
	return out, nil
}

// Total merges the buckets of an entity that start in an interval into one bucket. It lasts from the start of the
// first bucket to the end of the last one that is not empty. If all are empty, its times are zero. It costs as much
// as Buckets. With measures that keep window.Ends, buckets of 292 years or more fail with tsdb.ErrInvalid.
func (r *Reader[T]) Total(ctx context.Context, e tsdb.Entity, in tsdb.Interval) (_ window.Bucket, err error) {
	ctx, op := r.begin(ctx, telemetry.RollupTotal)
	defer func() {
		if err == nil {
			op.Returned(1)
		}
		op.End(err)
	}()
	l, err := r.level(ctx, false)
	if err != nil {
		return window.Bucket{}, err
	}
	if err := inside.Of(in).Check(); err != nil {
		return window.Bucket{}, err
	}
	path, err := l.path(e)
	if err != nil {
		return window.Bucket{}, err
	}
	ctx, cancel := l.table.Bound(ctx, true)
	defer cancel()
	total := bucket{values: make([]sums, len(l.measures))}
	first, last := int64(-1), int64(0)
	ends := slices.ContainsFunc(l.measures, func(m Measure[T]) bool { return m.has(window.Ends) })
	err = l.read(ctx, path, l.spanOf(in), false, func(b bucket) (bool, error) {
		if first < 0 {
			first, total.start = b.start, b.start
		}
		last = b.start
		if ends && time.UnixMilli(l.endOf(last)).Sub(time.UnixMilli(first)) == tooWide {
			return false, invalid.New(tsdb.ErrInvalid, "interval", stamp(time.UnixMilli(first))+" to "+stamp(time.UnixMilli(last)), "buckets of less than 292 years")
		}
		l.merge(&total, b)
		return true, nil
	})
	if err != nil {
		return window.Bucket{}, err
	}
	now := l.in.Clock().UnixMilli()
	out := l.public(&total, now)
	if first < 0 {
		out.Start, out.End, out.Open = time.Time{}, time.Time{}, false
		return out, nil
	}
	of := l.public(&bucket{start: last, values: make([]sums, len(l.measures))}, now)
	out.End, out.Open = of.End, of.Open
	return l.joinedTotal(ctx, e, in, out)
}

// EntityBuckets is the result of Many for one entity.
type EntityBuckets struct {
	Entity tsdb.Entity
	// Buckets are the buckets that start in the interval, in the requested order.
	Buckets []window.Bucket
	// Err is the reason why the buckets could not be read.
	Err error
}

// Many reads the buckets of several entities, and returns one result per entity, in order. If some fail, the error
// gives their number and the first reason, and the other results are valid. Many costs as much as Buckets for each
// entity, with at most 16 of them at once, or as many as tsdb.Concurrency sets. It holds all buckets in memory.
func (r *Reader[T]) Many(ctx context.Context, entities []tsdb.Entity, in tsdb.Interval, opts ...tsdb.ReadOption) (answers []EntityBuckets, err error) {
	ctx, op := r.begin(ctx, telemetry.RollupMany)
	defer func() { op.End(err) }()
	l, err := r.level(ctx, false)
	if err != nil {
		return nil, err
	}
	if err := inside.Of(in).Check(); err != nil {
		return nil, err
	}
	order, width, err := inside.Of(in).ReadOptions(opts)
	if err != nil {
		return nil, err
	}
	width = cmp.Or(width, 16)
	ctx, cancel := l.table.Bound(ctx, true)
	defer cancel()
	answers = make([]EntityBuckets, len(entities))
	bt.AtOnce(width, len(entities), func(i int) {
		a := &answers[i]
		a.Entity = entities[i]
		ctx, each := r.begin(ctx, telemetry.RollupBuckets)
		for b, err := range r.buckets(ctx, l, a.Entity, in, order, r.gaps) {
			if err != nil {
				a.Err = err
				break
			}
			a.Buckets = append(a.Buckets, b)
		}
		each.Returned(len(a.Buckets))
		each.End(a.Err)
	})
	failed, first := 0, error(nil)
	for i := range answers {
		op.Returned(len(answers[i].Buckets))
		if answers[i].Err != nil {
			if failed++; first == nil {
				first = fmt.Errorf("entity %d: %w", i, answers[i].Err)
			}
		}
	}
	if first != nil {
		return answers, fmt.Errorf("rollup: %d of %d entities could not be read, the first: %w", failed, len(entities), first)
	}
	return answers, nil
}
