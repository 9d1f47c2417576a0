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
	order, outside := tsdb.NewestFirst, tsdb.Interval{}
	if start, ok := in.Start(); ok && before {
		outside = tsdb.Until(start)
	}
	if end, ok := in.End(); ok && !before {
		order, outside = tsdb.OldestFirst, tsdb.Since(end)
	}
	// The tenant's limit of a range's length is for the interval, not for the history around it.
	if repo, ok := from.(*tsdb.Repository[T]); ok {
		from = inside.Unlimited(repo, false)
	}
	out := make([]anchor, len(a.rules))
	for _, limit := range []int{1, maxNeighbours} {
		seen, missing := 0, len(out)
		for p, err := range from.Range(ctx, e, outside, order, tsdb.Limit(limit)) {
			if err != nil {
				if _, ok := pointError(err); !ok {
					return nil, err
				}
			} else {
				missing = a.meet(out, p)
			}
			if seen++; missing == 0 || seen == limit {
				break
			}
		}
		if missing == 0 || seen < limit {
			break
		}
	}
	return out, nil
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
