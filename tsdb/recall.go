package tsdb

import (
	"context"
	"time"

	"github.com/tidemark-go/tidemark/internal/ctxerr"
	"github.com/tidemark-go/tidemark/internal/store/dataset"
	"github.com/tidemark-go/tidemark/internal/store/lastvalue"
)

// recall is one call that takes answers from the table's cache.
type recall struct {
	rows    *rows
	visible dataset.Visibility
	since   time.Time
	hedge   hedge
}

// undecodable is the error of a point whose payload is in no format that the dataset reads.
type undecodable struct {
	units int64
	err   error
}

// Error implements error.
func (e *undecodable) Error() string { return e.err.Error() }

// recalls reports whether the options let the cache answer for the n newest points of an entity.
func (r *rows) recalls(o readOptions, n int) bool {
	return o.stale > 0 && n == 1 && r.cache != nil && !r.d.Identity
}

func (r *rows) recall(o readOptions) recall {
	return recall{rows: r, visible: r.visibility(), since: r.cache.Since(o.stale), hedge: o.hedge}
}

// known returns the newest point of an entity, whose path has been checked, if the cache knows it, and else nil.
func (c *recall) known(path string) *lastvalue.Newest {
	n := c.rows.cache.Find(c.rows.space.ID(path), c.rows.d.Layout, c.since)
	if n == nil || !c.visible.Shows(n) {
		return nil
	}
	c.rows.cache.Hit()
	return n
}

// load returns the newest point of an entity that known does not: from a read that is under way, or from one of its own. Its
// error is an *undecodable where the point's format is unknown.
func (c *recall) load(ctx context.Context, path string) (*lastvalue.Newest, error) {
	r := c.rows
	ctx, cancel := r.bt.Bound(ctx, false)
	defer cancel()
	read := func(ctx context.Context) (*lastvalue.Newest, error) { return r.readNewest(ctx, path, c.hedge) }
	n, err := r.cache.Load(ctx, r.space.ID(path), r.d.Layout, c.since, c.visible.Shows, read)
	if err == nil && !c.visible.Shows(n) {
		// It expired between the start of another's read and this call; an older one may be visible in another class.
		n, err = read(ctx)
	}
	if err != nil && ctx.Err() != nil && err == context.Cause(ctx) {
		err = r.Explain(ctxerr.Of(ctx))
	}
	if err != nil {
		return nil, err
	}
	return n, nil
}

// readNewest reads the newest visible point of an entity, and leaves it as it is stored.
func (r *rows) readNewest(ctx context.Context, path string, h hedge) (*lastvalue.Newest, error) {
	if h.on() {
		r.hedges.earn(1, h.MaxRatio)
	}
	return once(ctx, r.table, h, func(ctx context.Context) (*lastvalue.Newest, error) {
		n := &lastvalue.Newest{Layout: r.d.Layout}
		var unknown error
		err := r.scan(ctx, span{path: path, newest: r.d.Precision.Max(), limit: 1}, func(f *found) bool {
			if f.Err != nil {
				unknown = &undecodable{units: f.Units, err: f.Err}
				return true
			}
			if f.row != nil {
				f.column = r.d.ColumnOf(f.item.Column)
			}
			n.Found, n.Units, n.Cell, n.Column, n.Payload = true, f.Units, f.item.Timestamp, f.column, f.item.Value
			return true
		})
		if err == nil {
			err = unknown
		}
		if err != nil {
			return nil, err
		}
		return n, nil
	})
}
