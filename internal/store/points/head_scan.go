package points

import (
	"context"
	"slices"

	"github.com/tidemark-go/tidemark/internal/ctxerr"
)

// scanHead is Scan for a dataset that keeps heads only. Other datasets read one entity from its points: the cost is the
// same, and a head can be out of date.
func (r *Rows) scanHead(ctx context.Context, s Span, visit func(*Found) bool) error {
	h := r.Visibility()
	k := r.D.Head.Points
	if s.Limit > 0 && s.Newest == r.D.Precision.Max() && !s.Reverse {
		k = min(k, s.Limit)
	}
	row, err := r.View.Row(ctx, r.headKey(s.Path), h.Between(s.Oldest, s.Newest).HeadFilter(k))
	if err != nil {
		return r.Explain(err)
	}
	versions := h.Versions(nil, row, k)
	if s.Reverse {
		slices.Reverse(versions)
	}
	visited := 0
	for i := range versions {
		v := &versions[i]
		if v.Units < s.Oldest || v.Units > s.Newest {
			continue
		}
		if s.Limit > 0 && visited == s.Limit {
			return nil
		}
		if err := ctxerr.Of(ctx); err != nil {
			return err
		}
		visited++
		if !visit(&Found{Hit: v.Hit(s.Path), item: v.Item, column: v.Rank}) {
			return nil
		}
	}
	return nil
}
