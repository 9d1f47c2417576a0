package window

import (
	"context"

	"github.com/tidemark-go/tidemark/internal/inside"
	"github.com/tidemark-go/tidemark/tsdb"
)

// maxNeighbours is how many points next to an interval Read looks at.
const maxNeighbours = 1000

// neighbours returns the nearest number of each measure before or after an interval.
func (a *Aggregator[T]) neighbours(ctx context.Context, from Ranger[T], e tsdb.Entity, in tsdb.Interval, before bool) ([]anchor, error) {
	out := make([]anchor, len(a.rules))
	err := nearest(ctx, from, e, in, before, func(p tsdb.Point[T]) bool { return a.meet(out, p) == 0 })
	return out, err
}

// nearest visits the points before or after an interval, the nearest first, until visit finds what it looks for. It
// first reads one point, which usually suffices.
func nearest[T any](ctx context.Context, from Ranger[T], e tsdb.Entity, in tsdb.Interval, before bool, visit func(tsdb.Point[T]) (done bool)) error {
	for _, limit := range []int{1, maxNeighbours} {
		seen, done := 0, false
		err := outside(ctx, from, e, in, before, limit, func(p tsdb.Point[T], err error) bool {
			seen++
			done = err == nil && visit(p)
			return !done
		})
		if err != nil || done || seen < limit {
			return err
		}
	}
	return nil
}

// outside visits up to limit points before or after an interval, the nearest first, until visit returns false. Those
// that do not decode come with their error.
func outside[T any](
	ctx context.Context, from Ranger[T], e tsdb.Entity, in tsdb.Interval, before bool, limit int, visit func(tsdb.Point[T], error) bool,
) error {
	order, beyond := tsdb.NewestFirst, tsdb.Interval{}
	start, hasStart := in.Start()
	end, hasEnd := in.End()
	switch {
	case before && hasStart:
		beyond = tsdb.Until(start)
	case !before && hasEnd:
		order, beyond = tsdb.OldestFirst, tsdb.Since(end)
	default:
		return nil // nothing is before all of time
	}
	// The tenant's limit of a range's length is for the interval, not for the history around it.
	if repo, ok := from.(*tsdb.Repository[T]); ok {
		from = inside.Of(repo).Unlimited(nil)
	}
	seen := 0
	for p, err := range from.Range(ctx, e, beyond, order, tsdb.Limit(limit)) {
		if err != nil {
			bad, ok := pointError(err)
			if !ok {
				return err
			}
			p.Time = bad.Time
		}
		if seen++; !visit(p, err) || seen == limit {
			break
		}
	}
	return nil
}

// meet takes the numbers of a point that are the first of their measure, and returns how many measures have none.
func (a *Aggregator[T]) meet(found []anchor, p tsdb.Point[T]) (missing int) {
	for i := range found {
		if found[i].found {
			continue
		}
		if n, ok := a.reading(i, p.Time, p.Value); ok {
			found[i] = neighbour(n, a.names[i], &a.rules[i], a.decimals(i))
			continue
		}
		missing++
	}
	return missing
}
