package tsdb

import (
	"context"

	"github.com/tidemark-go/tidemark/internal/ctxerr"
	"github.com/tidemark-go/tidemark/internal/store/dataset"
	"github.com/tidemark-go/tidemark/internal/store/lastvalue"
	"github.com/tidemark-go/tidemark/internal/store/points"
)

// recalled is newestOf for one point of each entity, through the cache.
func (r *Repository[T]) recalled(ctx context.Context, entities []Entity, o points.Options) []History[T] {
	out := make([]History[T], len(entities))
	c := r.rows.NewCacheRead(o)
	var unknown []int
	for i, e := range entities {
		if ctx.Err() != nil {
			out[i].Err = r.rows.Explain(ctxerr.Of(ctx))
		} else if n := c.Known(e.path); n != nil {
			out[i] = historyOf(r.newestPoint(e, n))
		} else {
			unknown = append(unknown, i)
		}
	}
	points.AtOnce(o.Width, len(unknown), func(k int) {
		i := unknown[k]
		out[i] = historyOf(r.load(ctx, c, entities[i]))
	})
	for i, e := range entities {
		out[i].Entity = e
	}
	return out
}

// historyOf returns the result of a read of one point as a history.
func historyOf[T any](p Point[T], err error) (h History[T]) {
	switch bad, isBad := err.(*PointError); {
	case isBad:
		h.Points, h.Err = []Point[T]{p}, PointErrors{bad}
	case err == nil:
		h.Points = []Point[T]{p}
	case err != ErrNotFound:
		h.Err = err
	}
	return h
}

// load reads the newest point of an entity that the cache does not know.
func (r *Repository[T]) load(ctx context.Context, c points.CacheRead, e Entity) (Point[T], error) {
	n, err := c.Load(ctx, e.path)
	if bad, ok := err.(*points.Undecodable); ok {
		p := Point[T]{Entity: e, Time: r.rows.D.Precision.Time(bad.Units)}
		return p, &PointError{Entity: e, Time: p.Time, Err: bad.Err}
	}
	if err != nil {
		return Point[T]{}, err
	}
	return r.newestPoint(e, n)
}

// newestPoint returns a cached point with a value that the caller may change: a value without references is cached and
// copied; any other is decoded for each caller.
func (r *Repository[T]) newestPoint(e Entity, n *lastvalue.Newest) (Point[T], error) {
	if !n.Found {
		return Point[T]{}, ErrNotFound
	}
	s := r.schema
	if s.plain {
		if v, ok := n.Value(s); ok {
			return Point[T]{Entity: e, Time: s.d.Precision.Time(n.Units), Value: v.(T)}, nil
		}
	}
	p, bad := r.decode(dataset.Hit{Path: e.path, Units: n.Units, Payload: n.Payload, Tag: s.d.Columns[n.Column].Tag})
	if bad != nil {
		return p, bad
	}
	if s.plain {
		n.Keep(s, p.Value)
	}
	return p, nil
}
