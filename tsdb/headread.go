package tsdb

import (
	"context"
	"slices"

	"github.com/tidemark-go/tidemark/internal/ctxerr"
)

// scanHead is scan where heads are all there is. Elsewhere one entity is read from its points, which costs the same and is
// true even while a head is not.
func (r *rows) scanHead(ctx context.Context, s span, visit func(*found) bool) error {
	h := r.visibility()
	k := r.d.Head.Points
	if s.limit > 0 && s.newest == r.d.Precision.Max() && !s.reverse {
		k = min(k, s.limit)
	}
	row, err := r.bt.Row(ctx, r.headKey(s.path), h.HeadFilter(k))
	if err != nil {
		return r.Explain(err)
	}
	versions := h.Versions(nil, row, k)
	if s.reverse {
		slices.Reverse(versions)
	}
	visited := 0
	for i := range versions {
		v := &versions[i]
		if v.Units < s.oldest || v.Units > s.newest {
			continue
		}
		if s.limit > 0 && visited == s.limit {
			return nil
		}
		if err := ctxerr.Of(ctx); err != nil {
			return err
		}
		visited++
		if !visit(&found{Hit: v.Hit(s.path), item: v.Item, column: v.Rank}) {
			return nil
		}
	}
	return nil
}
