package tsdb

import (
	"context"

	"github.com/tidemark-go/tidemark/internal/cursor"
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
	if l := r.rows.Limiter(); l != nil && !bare {
		if err := l.Span(r.rows.Tenant, r.length(in)); err != nil {
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
	return inside.BelowRead{
		Read: read, Limit: limit, Decode: r.decode, Done: done, Cursors: r.store.cursors,
		Scope: cursor.Scope{
			Tenant: r.rows.Tenant.String(), Dataset: r.schema.d.Name, Precision: byte(r.schema.d.Precision), Path: p.path,
			Oldest: oldest, Newest: newest, Reverse: read.Reverse,
		},
	}, nil
}
