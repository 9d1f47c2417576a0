package tsdb

import (
	"context"
	"reflect"
	"time"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/internal/ctxerr"
	"github.com/tidemark-go/tidemark/internal/store/dataset"
	"github.com/tidemark-go/tidemark/internal/store/lastvalue"
)

// recall is one call that takes answers from the store's cache.
type recall[T any] struct {
	repo    *Repository[T]
	horizon dataset.Visibility
	since   time.Time
	hedge   Hedge
}

// recalls reports whether the options let the cache answer for the n newest points of an entity.
func (r *Repository[T]) recalls(o readOptions, n int) bool {
	return o.stale > 0 && n == 1 && r.store.core.cache != nil && !r.schema.d.Identity
}

func (r *Repository[T]) recall(o readOptions) recall[T] {
	return recall[T]{repo: r, horizon: r.horizon(), since: r.store.core.cache.Since(o.stale), hedge: o.hedge}
}

// known returns the newest point of an entity, which has been checked, where the cache knows it.
func (c *recall[T]) known(e Entity) (p Point[T], err error, ok bool) {
	r := c.repo
	n := r.store.core.cache.Find(r.space.ID(e.path), r.schema.d.Layout, c.since)
	if n == nil || !c.horizon.Shows(n) {
		return Point[T]{}, nil, false
	}
	r.store.core.cache.Hit()
	p, err = r.newestPoint(e, n)
	return p, err, true
}

// load returns the newest point of an entity that known does not: from a read that is under way, or from one of its own.
func (c recall[T]) load(ctx context.Context, e Entity) (Point[T], error) {
	r := c.repo
	ctx, cancel := r.rows.Bound(ctx, false)
	defer cancel()
	read := func(ctx context.Context) (*lastvalue.Newest, error) { return r.readNewest(ctx, e, c.hedge) }
	n, err := r.store.core.cache.Load(ctx, r.space.ID(e.path), r.schema.d.Layout, c.since, c.horizon.Shows, read)
	if err == nil && !c.horizon.Shows(n) {
		// It expired between the start of another's read and this call; an older one may be visible in another class.
		n, err = read(ctx)
	}
	if err == nil {
		return r.newestPoint(e, n)
	}
	if bad, ok := err.(*PointError); ok {
		return Point[T]{Entity: e, Time: bad.Time}, bad
	}
	if ctx.Err() != nil && err == context.Cause(ctx) {
		err = r.store.core.Explain(ctxerr.Of(ctx))
	}
	return Point[T]{}, err
}

// recalled is newestOf for one point of each entity, from the cache where that knows it.
func (r *Repository[T]) recalled(ctx context.Context, entities []Entity, o readOptions) []History[T] {
	out := make([]History[T], len(entities))
	c := r.recall(o)
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
			answer(i, Point[T]{}, r.store.core.Explain(ctxerr.Of(ctx)))
		} else if p, err, ok := c.known(e); ok {
			answer(i, p, err)
		} else {
			unknown = append(unknown, i)
		}
	}
	atOnce(o.width, len(unknown), func(k int) {
		i := unknown[k]
		p, err := c.load(ctx, entities[i])
		answer(i, p, err)
	})
	return out
}

// readNewest reads the newest visible point of an entity, and leaves it as it is stored.
func (r *Repository[T]) readNewest(ctx context.Context, e Entity, hedge Hedge) (*lastvalue.Newest, error) {
	if hedge.on() {
		r.store.core.hedges.earn(1, hedge.MaxRatio)
	}
	return once(ctx, r.store, hedge, func(ctx context.Context) (*lastvalue.Newest, error) {
		d := &r.schema.d
		n := &lastvalue.Newest{Layout: d.Layout}
		var unknown error
		err := r.scan(ctx, span{entity: e, newest: d.Precision.Max(), limit: 1, stored: func(units int64, item *bigtable.ReadItem, column int, err error) {
			if unknown = err; err != nil {
				unknown = &PointError{Entity: e, Time: d.Precision.Time(units), Err: err}
				return
			}
			n.Found, n.Units, n.Cell, n.Column, n.Payload = true, units, item.Timestamp, column, item.Value
		}}, nil)
		if err == nil {
			err = unknown
		}
		if err != nil {
			return nil, err
		}
		return n, nil
	})
}

// newestPoint makes a point of what the cache knows. Its value is the caller's own: one that holds no references is kept
// beside the payload and copied, any other is decoded for each caller.
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

// plain reports whether a copy of a value shares nothing with it that can be changed.
func plain(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Array:
		return plain(t.Elem())
	case reflect.Struct:
		if t == timeType { // its pointer is to a time zone, which nobody changes
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
