package points

import (
	"context"

	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/ctxerr"
	"github.com/tidemark-go/tidemark/internal/store/dataset"
)

// Newest reads the n newest visible points of each entity by its path. It calls visit once for each index, from several
// goroutines at once. Hits are valid only during the visit. The paths have been checked and are all different.
func (r *Rows) Newest(ctx context.Context, paths []string, n int, o Options, visit func(i int, hits []dataset.Hit, err error)) {
	if r.D.HeadsHold(n) {
		r.newestOfHeads(ctx, paths, n, o, visit)
		return
	}
	if n == 1 && len(paths) >= together {
		r.newestTogether(ctx, paths, o, visit)
		return
	}
	r.Hedges.Earn(o.Hedge, len(paths))
	bt.AtOnce(o.Width, len(paths), func(i int) {
		hits, err := r.newestOfOne(ctx, paths[i], n, o)
		visit(i, hits, err)
	})
}

// newestOfOne reads the n newest visible points of one entity.
func (r *Rows) newestOfOne(ctx context.Context, path string, n int, o Options) ([]dataset.Hit, error) {
	if ctx.Err() != nil {
		return nil, r.Explain(ctxerr.Of(ctx))
	}
	return Once(ctx, r.Table, o.Hedge, func(ctx context.Context) ([]dataset.Hit, error) { return r.NewestHits(ctx, path, n) })
}

// NewestHits makes one read of the n newest visible points of an entity.
func (r *Rows) NewestHits(ctx context.Context, path string, n int) ([]dataset.Hit, error) {
	hits := make([]dataset.Hit, 0, min(n, 64))
	err := r.Scan(ctx, Span{Path: path, Newest: r.D.Precision.Max(), Limit: n}, func(f *Found) bool {
		hits = append(hits, f.Hit)
		return true
	})
	if err != nil {
		return nil, err
	}
	return hits, nil
}
