package tsdb

import (
	"context"

	"github.com/tidemark-go/tidemark/internal/inside"
	"github.com/tidemark-go/tidemark/internal/store/below"
)

// below implements inside.Below.
func (r *Repository[T]) below(ctx context.Context, p Prefix, in Interval, opts []ReadOption, bare bool) (inside.BelowRead, error) {
	if err := r.admitPrefix(ctx, p); err != nil {
		return inside.BelowRead{}, err
	}
	takes := orderOption | limitOption
	if bare {
		takes = 0
	}
	o, err := readOptionsOf(takes, opts)
	if err == nil {
		err = in.Check()
	}
	if err != nil {
		return inside.BelowRead{}, err
	}
	if o.Width == 0 {
		o.Width = defaultConcurrency
	}
	oldest, newest, ok := in.units(r.schema.d.Precision)
	if !ok {
		oldest, newest = 1, 0
	}
	if !bare {
		if err := r.admitSpan(in); err != nil {
			return inside.BelowRead{}, err
		}
	}
	done, err := r.rows.BeginWideRead(&o.Options)
	if err != nil {
		return inside.BelowRead{}, err
	}
	read := &below.Read{Rows: &r.rows, Prefix: p.path, Oldest: oldest, Newest: newest, Reverse: o.order == OldestFirst, Options: o.Options}
	limit := -1
	if o.limited {
		limit, read.Most = o.limit, o.limit
	}
	scope := r.rows.Scope(0, p.path)
	scope.Oldest, scope.Newest, scope.Reverse = oldest, newest, read.Reverse
	return inside.BelowRead{Read: read, Limit: limit, Decode: r.decode, Done: done, Cursors: r.rows.Cursors, Scope: scope}, nil
}
