package tsdb

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/tidemark-go/tidemark/internal/ctxerr"
	"github.com/tidemark-go/tidemark/internal/store/dataset"
)

// newest reads the n newest visible points of each entity by its path, and calls visit once with each index: several at a time,
// from several goroutines. The hits are the visitor's only during the visit. The paths have been checked, and no two are the same. All reads of the newest points of known
// entities come through here, but for those of the cache.
func (r *rows) newest(ctx context.Context, paths []string, n int, o readOptions, visit func(i int, hits []dataset.Hit, err error)) {
	if r.d.HeadsHold(n) {
		r.newestOfHeads(ctx, paths, n, o, visit)
		return
	}
	if o.hedge.on() {
		r.hedges.earn(len(paths), o.hedge.MaxRatio)
	}
	atOnce(o.width, len(paths), func(i int) {
		hits, err := r.newestOfOne(ctx, paths[i], n, o)
		visit(i, hits, err)
	})
}

// newestOfOne reads the n newest visible points of one entity.
func (r *rows) newestOfOne(ctx context.Context, path string, n int, o readOptions) ([]dataset.Hit, error) {
	if ctx.Err() != nil {
		return nil, r.Explain(ctxerr.Of(ctx))
	}
	return once(ctx, r.table, o.hedge, func(ctx context.Context) ([]dataset.Hit, error) { return r.newestHits(ctx, path, n) })
}

// newestHits makes one read of the n newest visible points of an entity.
func (r *rows) newestHits(ctx context.Context, path string, n int) ([]dataset.Hit, error) {
	hits := make([]dataset.Hit, 0, min(n, 64))
	err := r.scan(ctx, span{path: path, newest: r.d.Precision.Max(), limit: n}, func(f *found) bool {
		hits = append(hits, f.Hit)
		return true
	})
	if err != nil {
		return nil, err
	}
	return hits, nil
}

// atOnce calls do for each of n, at most width of them at a time.
func atOnce(width, n int, do func(i int)) {
	var next atomic.Int64
	work := func() {
		for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
			do(i)
		}
	}
	var workers sync.WaitGroup
	for range min(width, n) - 1 {
		workers.Go(work)
	}
	work()
	workers.Wait()
}
