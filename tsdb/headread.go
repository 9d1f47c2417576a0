package tsdb

import (
	"context"
	"slices"

	"github.com/tidemark-go/tidemark/internal/ctxerr"
)

// scanHead is scan where heads are all there is. Elsewhere one entity is read from its points, which costs the same and is
// true even while a head is not.
func (r *Repository[T]) scanHead(ctx context.Context, s span, visit func(Point[T], *PointError) bool) error {
	h := r.horizon()
	k := r.schema.d.Head.Points
	if s.limit > 0 && s.newest == r.schema.d.Precision.Max() && !s.reverse {
		k = min(k, s.limit)
	}
	row, err := r.rows.Row(ctx, r.headKey(s.entity.path), h.HeadFilter(k))
	if err != nil {
		return r.store.core.Explain(err)
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
		if s.room != nil && !s.room(len(v.Item.Value)) {
			return nil
		}
		visited++
		if s.stored != nil {
			s.stored(v.Units, v.Item, v.Rank, v.Err)
			continue
		}
		if !visit(r.decode(v.Hit(s.entity.path))) {
			return nil
		}
	}
	return nil
}
