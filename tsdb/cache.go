package tsdb

import (
	"cmp"
	"context"
	"strconv"
	"time"

	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/ctxerr"
	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/store/dataset"
	"github.com/tidemark-go/tidemark/internal/store/lastvalue"
	"github.com/tidemark-go/tidemark/internal/store/points"
)

// CacheOptions configure a store's last-value cache, which holds the newest points of entities for calls with MaxStale.
// The zero value is no cache.
type CacheOptions struct {
	// Entries is the maximum number of entities, including entities without a point: up to 100 million. Zero is no
	// cache.
	Entries int
	// Bytes is the approximate memory limit. Zero is 1 KiB per entry. Points over 64 KiB are not cached.
	Bytes int64
	// MaxAge is how long after its read a point may be used, even if a call's MaxStale allows more. Zero is one minute.
	MaxAge time.Duration
}

const (
	maxCacheEntries = 100_000_000
	cacheEntryBytes = 1 << 10
	cacheMaxAge     = time.Minute
)

func (o CacheOptions) check() error {
	return cmp.Or(
		invalid.Range(ErrInvalid, "Cache.Entries", o.Entries, 0, maxCacheEntries, "0 for no cache, up to "+strconv.Itoa(maxCacheEntries)),
		invalid.Range(ErrInvalid, "Cache.Bytes", o.Bytes, 0, 0, orDefault),
		invalid.Range(ErrInvalid, "Cache.MaxAge", o.MaxAge, 0, 0, orDefault),
	)
}

// open returns the cache, or nil.
func (o CacheOptions) open() *lastvalue.Cache {
	if o.Entries == 0 {
		return nil
	}
	return lastvalue.New(lastvalue.Options{
		Entries: o.Entries,
		Bytes:   cmp.Or(o.Bytes, int64(o.Entries)*cacheEntryBytes),
		MaxAge:  cmp.Or(o.MaxAge, cacheMaxAge),
		Closed:  ErrClosed,
	})
}

// MaxStale is a ReadOption: the maximum age of a result that Latest, or LatestMany with n = 1, may take from the
// store's last-value cache (StoreOptions.Cache). The result contains everything that was stored that long before the
// call, and everything that this store had stored or deleted before the call; of two concurrent writes to one entity it
// may contain either. Age counts from the start of the read, on the monotonic clock, not on StoreOptions.Clock.
// Concurrent callers share the read of an entity that is not cached. MaxStale(0), the default, always reads the table.
// A negative value is refused with ErrInvalid.
//
// It has no effect without a cache, on any other call, or in a schema with Identity.
type MaxStale time.Duration

// newestCached is newestOf for one point of each entity, through the cache.
func (r *Repository[T]) newestCached(ctx context.Context, entities []Entity, o points.Options) []History[T] {
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
	bt.AtOnce(o.Width, len(unknown), func(k int) {
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
	p, err := r.decode(dataset.Hit{Path: e.path, Units: n.Units, Payload: n.Payload, Tag: s.d.Columns[n.Column].Tag})
	if err != nil {
		return p, err
	}
	if s.plain {
		n.Keep(s, p.Value)
	}
	return p, nil
}
