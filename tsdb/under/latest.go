package under

import (
	"context"
	"iter"

	"github.com/tidemark-go/tidemark/internal/store/dataset"
	"github.com/tidemark-go/tidemark/internal/telemetry"
	"github.com/tidemark-go/tidemark/tsdb"
)

// LatestN returns the n newest visible points of each entity under a prefix, newest first, as a sequence in the order of
// Entity.Compare. n is 1 to 10,000. An entity may have fewer points, and has at least one. Each iteration over the sequence sends
// new requests, and leaving the loop ends them.
//
// It costs as many requests as Repository.LatestUnder, and n - 1 rows more per entity. In a schema with heads of at least n
// points it reads one row per entity, 1,000 per request. Memory: up to 4 MiB of payloads for each part
// that is read in parallel, plus the n points of one entity.
//
// If some of an entity's points do not decode, they have a zero value, the history's Err is tsdb.PointErrors, and the error of
// the pair is the same; the sequence continues. Any other error is the last pair.
func LatestN[T any](ctx context.Context, repo *tsdb.Repository[T], p tsdb.Prefix, n int, opts ...tsdb.ReadOption) iter.Seq2[tsdb.History[T], error] {
	return func(yield func(tsdb.History[T], error) bool) {
		ctx, c, err := begin(ctx, repo, telemetry.UnderLatestN, p, tsdb.AllTime(), opts, true)
		defer func() { c.end(err) }()
		if err == nil {
			err = checkCount(n)
		}
		if err != nil {
			yield(tsdb.History[T]{}, err)
			return
		}
		var h tsdb.History[T]
		var bad tsdb.PointErrors
		stopped := false
		flush := func() bool {
			if len(h.Points) > 0 {
				if bad != nil {
					h.Err = bad
				}
				stopped = !yield(h, h.Err)
			}
			h, bad = tsdb.History[T]{}, nil
			return !stopped
		}
		err = c.NewestOfEach(ctx, n, true, func(hit dataset.Hit) bool {
			c.op.Returned(1)
			point, wrong := c.Decode(hit)
			if len(h.Points) > 0 && h.Entity != point.Entity && !flush() {
				return false
			}
			h.Entity, h.Points = point.Entity, append(h.Points, point)
			if wrong, ok := wrong.(*tsdb.PointError); ok {
				bad = append(bad, wrong)
			}
			return true
		})
		switch {
		case stopped:
		case err != nil:
			yield(tsdb.History[T]{}, err)
		default:
			flush()
		}
	}
}
