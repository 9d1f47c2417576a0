package tsdb

import (
	"context"
	"reflect"
	"time"

	"github.com/tidemark-go/tidemark/internal/ctxerr"
	"github.com/tidemark-go/tidemark/internal/store/dataset"
	"github.com/tidemark-go/tidemark/internal/store/lastvalue"
	"github.com/tidemark-go/tidemark/internal/store/points"
)

// recalled is newestOf for one point of each entity, through the cache.
func (r *Repository[T]) recalled(ctx context.Context, entities []Entity, o points.Options) []History[T] {
	out := make([]History[T], len(entities))
	c := r.rows.NewCacheRead(o)
	answer := func(i int, p Point[T], err error) {
		out[i] = History[T]{Entity: entities[i]}
		bad, isBad := err.(*PointError)
		switch {
		case isBad:
			out[i].Points, out[i].Err = []Point[T]{p}, PointErrors{bad}
		case err == nil:
			out[i].Points = []Point[T]{p}
		case err != ErrNotFound:
			out[i].Err = err
		}
	}
	var unknown []int
	for i, e := range entities {
		if ctx.Err() != nil {
			answer(i, Point[T]{}, r.rows.Explain(ctxerr.Of(ctx)))
		} else if n := c.Known(e.path); n != nil {
			p, err := r.newestPoint(e, n)
			answer(i, p, err)
		} else {
			unknown = append(unknown, i)
		}
	}
	points.AtOnce(o.Width, len(unknown), func(k int) {
		i := unknown[k]
		n, err := c.Load(ctx, entities[i].path)
		if err != nil {
			p, err := r.unread(entities[i], err)
			answer(i, p, err)
			return
		}
		p, err := r.newestPoint(entities[i], n)
		answer(i, p, err)
	})
	return out
}

// unread returns the result of a read through the cache that failed.
func (r *Repository[T]) unread(e Entity, err error) (Point[T], error) {
	if bad, ok := err.(*points.Undecodable); ok {
		p := Point[T]{Entity: e, Time: r.rows.D.Precision.Time(bad.Units)}
		return p, &PointError{Entity: e, Time: p.Time, Err: bad.Err}
	}
	return Point[T]{}, err
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

var timeType = reflect.TypeFor[time.Time]()

// plain reports whether copies of a value share no mutable memory.
func plain(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Array:
		return plain(t.Elem())
	case reflect.Struct:
		if t == timeType { // its pointer is to an immutable time zone
			return true
		}
		for i := range t.NumField() {
			if !plain(t.Field(i).Type) {
				return false
			}
		}
		return true
	case reflect.String:
		return true
	}
	return t.Kind() >= reflect.Bool && t.Kind() <= reflect.Complex128
}
