package points

import (
	"context"
	"time"

	"github.com/tidemark-go/tidemark/internal/ctxerr"
	"github.com/tidemark-go/tidemark/internal/store/dataset"
	"github.com/tidemark-go/tidemark/internal/store/lastvalue"
)

// CacheRead is one call that the last-value cache may answer.
type CacheRead struct {
	rows    *Rows
	visible dataset.Visibility
	since   time.Time
	hedge   Hedge
}

// Undecodable is the error of a point whose payload has a format that the dataset does not read.
type Undecodable struct {
	Units int64
	Err   error
}

// Error implements error.
func (e *Undecodable) Error() string { return e.Err.Error() }

// Cached reports whether the options allow the cache to answer for the n newest points of an entity.
func (r *Rows) Cached(o Options, n int) bool {
	return o.Stale > 0 && n == 1 && r.Cache != nil && !r.D.Identity
}

// NewCacheRead begins a call whose options Cached has accepted.
func (r *Rows) NewCacheRead(o Options) CacheRead {
	return CacheRead{rows: r, visible: r.Visibility(), since: r.Cache.Since(o.Stale), hedge: o.Hedge}
}

// Known returns the newest point of an entity if the cache has it, and else nil. The path has been checked.
func (c *CacheRead) Known(path string) *lastvalue.Newest {
	n := c.rows.Cache.Find(c.rows.Space.ID(path), c.rows.D.Layout, c.since)
	if n == nil || !c.visible.Shows(n) {
		return nil
	}
	c.rows.Cache.Hit()
	return n
}

// Load reads the newest point of an entity that Known does not return. It joins a running read, or makes one. The error
// is an *Undecodable if the point's format is unknown.
func (c *CacheRead) Load(ctx context.Context, path string) (*lastvalue.Newest, error) {
	r := c.rows
	ctx, cancel := r.View.Bound(ctx, false)
	defer cancel()
	read := func(ctx context.Context) (*lastvalue.Newest, error) { return r.readNewest(ctx, path, c.hedge) }
	n, err := r.Cache.Load(ctx, r.Space.ID(path), r.D.Layout, c.since, c.visible.Shows, read)
	if err == nil && !c.visible.Shows(n) {
		// The point expired after another call began its read. An older one may be visible in another class.
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

// readNewest reads the newest visible point of an entity, not decoded.
func (r *Rows) readNewest(ctx context.Context, path string, h Hedge) (*lastvalue.Newest, error) {
	r.Hedges.Earn(h, 1)
	type answer struct {
		newest  *lastvalue.Newest
		unknown error // this is a result too: a hedge does not wait for the other request
	}
	a, err := Once(ctx, r.Table, h, func(ctx context.Context) (answer, error) {
		n := &lastvalue.Newest{Layout: r.D.Layout}
		a := answer{newest: n}
		err := r.Scan(ctx, Span{Path: path, Newest: r.D.Precision.Max(), Limit: 1}, func(f *Found) bool {
			if f.Err != nil {
				a = answer{unknown: &Undecodable{Units: f.Units, Err: f.Err}}
				return true
			}
			if f.row != nil {
				f.column = r.D.ColumnOf(f.item.Column)
			}
			n.Found, n.Units, n.Cell, n.Column, n.Payload = true, f.Units, f.item.Timestamp, f.column, f.item.Value
			return true
		})
		return a, err
	})
	if err != nil {
		return nil, err
	}
	return a.newest, a.unknown
}
