package tsdb

import (
	"context"
	"iter"
	"time"

	"github.com/tidemark-go/tidemark/internal/ctxerr"
	"github.com/tidemark-go/tidemark/internal/store/dataset"
	"github.com/tidemark-go/tidemark/internal/store/points"
	"github.com/tidemark-go/tidemark/internal/telemetry"
)

// Get returns the point of an entity at exactly t, truncated to the schema's precision; in a schema with Identity, the
// one with the ID of WithID. The error is ErrNotFound if the point does not exist or has expired, and a *PointError if
// its payload does not decode. It costs one request for one row, or two with a Hedge.
func (r *Repository[T]) Get(ctx context.Context, e Entity, t time.Time, opts ...ReadOption) (Point[T], error) {
	return r.one(ctx, telemetry.Get, e, opts, func(a *access) (points.Span, error) {
		if err := a.rows.Space.CheckID(a.id); err != nil {
			return points.Span{}, err
		}
		units, err := a.rows.D.Precision.Units(t)
		return points.Span{Oldest: units, Newest: units, ID: a.id}, err
	})
}

// Latest returns the newest visible point of an entity, including points in the future. The error is ErrNotFound if
// there is none, and a *PointError if its payload does not decode. It costs one request that stops at the first row,
// however long the history is, and never reads expired rows. With MaxStale the store's last-value cache may answer;
// with a Hedge there may be a second request.
func (r *Repository[T]) Latest(ctx context.Context, e Entity, opts ...ReadOption) (Point[T], error) {
	return r.one(ctx, telemetry.Latest, e, opts, func(a *access) (points.Span, error) {
		return points.Span{Newest: a.rows.D.Precision.Max()}, nil
	})
}

func (r *Repository[T]) latestCached(ctx context.Context, e Entity, o points.Options) (Point[T], error) {
	if ctx.Err() != nil {
		return Point[T]{}, r.store.core.Explain(ctxerr.Of(ctx))
	}
	c := r.rows.NewCacheRead(o)
	if n := c.Known(e.path); n != nil {
		return r.newestPoint(e, n)
	}
	return r.load(ctx, c, e)
}

// AsOf returns the newest visible point of an entity at or before t. Errors and costs are those of Latest. AsOf ignores
// MaxStale.
func (r *Repository[T]) AsOf(ctx context.Context, e Entity, t time.Time, opts ...ReadOption) (Point[T], error) {
	return r.one(ctx, telemetry.AsOf, e, opts, func(a *access) (points.Span, error) {
		newest, ok := a.rows.D.Precision.AtOrBefore(t)
		if !ok {
			return points.Span{}, ErrNotFound
		}
		return points.Span{Newest: newest}, nil
	})
}

// one returns the newest visible point of an entity in a span of time.
func (r *Repository[T]) one(ctx context.Context, name telemetry.Name, e Entity, opts []ReadOption, span func(*access) (points.Span, error)) (p Point[T], err error) {
	ctx, op := r.part().begin(ctx, name)
	defer func() {
		if err == nil {
			op.Returned(1)
		}
		op.End(err)
	}()
	s, o, done, err := r.part().beginOne(ctx, e, opts, span)
	if err != nil {
		return Point[T]{}, err
	}
	defer done()
	if name == telemetry.Latest && r.rows.Cached(o.Options, 1) {
		return r.latestCached(ctx, e, o.Options)
	}
	return r.newestIn(ctx, s, o.Hedge)
}

// beginOne begins a read of the newest point of an entity in a span.
func (a *access) beginOne(ctx context.Context, e Entity, opts []ReadOption, span func(*access) (points.Span, error)) (s points.Span, o readOptions, done func(), err error) {
	if o, err = a.readOptions(ctx, e, 0, opts); err == nil {
		s, err = span(a)
	}
	if err == nil {
		done, err = a.rows.BeginRead()
	}
	s.Path, s.Limit = e.path, 1
	return s, o, done, err
}

// LatestN returns the n newest visible points of an entity, newest first, or fewer if the entity has fewer; no points
// is not an error. A point whose payload does not decode keeps its place, with a zero value, and the error is
// PointErrors. It costs one request for n rows, or two with a Hedge, and memory for n points. For many points use
// Range.
func (r *Repository[T]) LatestN(ctx context.Context, e Entity, n int, opts ...ReadOption) (newest []Point[T], err error) {
	ctx, op := r.part().begin(ctx, telemetry.LatestN)
	defer func() {
		op.Returned(len(newest))
		op.End(err)
	}()
	o, err := r.part().readOptions(ctx, e, 0, opts)
	if err == nil {
		err = checkNumber(n)
	}
	if err != nil || n == 0 {
		return nil, err
	}
	done, err := r.rows.BeginRead()
	if err != nil {
		return nil, err
	}
	defer done()
	s := points.Span{Path: e.path, Newest: r.rows.D.Precision.Max(), Limit: n}
	h, err := hedged(ctx, &r.rows, o.Hedge, func(ctx context.Context) (h History[T], err error) {
		err = r.rows.Scan(ctx, s, func(f *points.Found) bool {
			if h.Points == nil {
				h.Points = make([]Point[T], 0, min(n, 64))
			}
			r.add(&h, f.Hit)
			return true
		})
		return h, err
	})
	if err != nil {
		return nil, err
	}
	return h.Points, h.Err
}

// Range returns the visible points of an entity in an interval as a sequence, newest first by default. It takes an
// Order and a Limit. Each iteration over the sequence sends a new request. It streams: memory does not grow with the
// number of points, and leaving the loop ends the request.
//
// The start of the iteration decides which points have expired; a point that expires later is still yielded. A point
// whose payload does not decode is yielded with its entity, its time and a *PointError, and the sequence continues. Any
// other error is the last pair. The scan timeout bounds the iteration, including the time that the loop body takes.
func (r *Repository[T]) Range(ctx context.Context, e Entity, in Interval, opts ...ReadOption) iter.Seq2[Point[T], error] {
	return func(yield func(Point[T], error) bool) {
		var err error
		var seen struct { // one allocation for both
			rows    int
			stopped bool
		}
		ctx, op := r.part().begin(ctx, telemetry.Range)
		defer func() {
			op.Returned(seen.rows)
			op.End(err)
		}()
		s, done, err := r.part().beginRange(ctx, e, in, opts)
		if err != nil {
			yield(Point[T]{}, err)
			return
		}
		if done == nil {
			return
		}
		defer done()
		err = r.rows.Scan(ctx, s, func(f *points.Found) bool {
			seen.rows++
			seen.stopped = !yield(r.decode(f.Hit))
			return !seen.stopped
		})
		if err != nil && !seen.stopped {
			yield(Point[T]{}, err)
		}
	}
}

// beginRange begins a read of the points of an entity in an interval. done is nil if there is nothing to read.
func (a *access) beginRange(ctx context.Context, e Entity, in Interval, opts []ReadOption) (s points.Span, done func(), err error) {
	s, o, err := a.spanOf(ctx, e, in, orderOption|limitOption, opts)
	if err != nil || s.Oldest > s.Newest || o.limited && o.limit == 0 {
		return s, nil, err
	}
	s.Long = true
	done, err = a.readSpan(in)
	return s, done, err
}

// spanOf returns what a call with options reads of an entity's points in an interval.
func (a *access) spanOf(ctx context.Context, e Entity, in Interval, takes optionSet, opts []ReadOption) (s points.Span, o readOptions, err error) {
	if o, err = a.readOptions(ctx, e, takes, opts); err == nil {
		err = in.check()
	}
	if err != nil {
		return s, o, err
	}
	oldest, newest := in.units(a.rows.D.Precision)
	return points.Span{Path: e.path, Oldest: oldest, Newest: newest, Limit: o.limit, Reverse: o.order == OldestFirst}, o, nil
}

// readOptions checks that the call may read the entity, and resolves its options.
func (a *access) readOptions(ctx context.Context, e Entity, takes optionSet, opts []ReadOption) (readOptions, error) {
	if err := a.admitEntity(ctx, e); err != nil {
		return readOptions{}, err
	}
	return readOptionsOf(takes, opts)
}

func (r *Repository[T]) newestIn(ctx context.Context, s points.Span, h points.Hedge) (Point[T], error) {
	var n newest[T]
	var err error
	if h.On() {
		n, err = hedged(ctx, &r.rows, h, func(ctx context.Context) (newest[T], error) { return r.firstIn(ctx, s) })
	} else {
		n, err = r.firstIn(ctx, s) // saves the closure
	}
	if err != nil {
		return Point[T]{}, err
	}
	return n.point, n.err
}

// newest is the result of a read of one point. That there is none, or that it does not decode, is a result too: a hedge
// waits for the other request only if the read failed.
type newest[T any] struct {
	point Point[T]
	err   error
}

func (r *Repository[T]) firstIn(ctx context.Context, s points.Span) (n newest[T], err error) {
	n.err = ErrNotFound
	err = r.rows.Scan(ctx, s, func(f *points.Found) bool {
		n.point, n.err = r.decode(f.Hit)
		return true
	})
	return n, err
}

// readSpan begins a read of an interval, after a check of the tenant's limits.
func (a *access) readSpan(in Interval) (done func(), err error) {
	if err := a.admitSpan(in); err != nil {
		return nil, err
	}
	return a.rows.BeginRead()
}

func (a *access) admitSpan(in Interval) error {
	start, _ := in.Start()
	end, ended := in.End()
	return a.rows.AdmitSpan(start, end, ended)
}

// decode returns a stored point. An error is a *PointError.
func (r *Repository[T]) decode(h dataset.Hit) (Point[T], error) {
	p := Point[T]{Entity: Entity{path: h.Path}, Time: r.rows.D.Precision.Time(h.Units), ID: h.ID}
	err := h.Err
	if err == nil {
		p.Value, err = r.schema.decoders[h.Tag](h.Payload)
	}
	if err != nil {
		return p, &PointError{Entity: p.Entity, Time: p.Time, ID: p.ID, Err: err}
	}
	return p, nil
}
