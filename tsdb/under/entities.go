package under

import (
	"context"
	"iter"

	"github.com/tidemark-go/tidemark/internal/inside"
	"github.com/tidemark-go/tidemark/internal/telemetry"
	"github.com/tidemark-go/tidemark/tsdb"
)

// Entities returns the entities under a prefix that have a visible point in an interval, as a sequence in the order of
// Entity.Compare: the devices that a chart of that day shows. A point that does not decode counts as a point. Each iteration over
// the sequence sends new requests, and leaving the loop ends them.
//
// It costs as much as Repository.Entities. Each entity whose newest point is behind the interval costs another request for one
// point, in parallel for up to 250 entities. So an interval without an end costs nothing more, and one that ended long ago a
// request for every entity.
//
// It accepts a tsdb.Concurrency and a tsdb.Hedge; requests for single entities are not hedged. An error is the last pair. The scan
// timeout bounds the iteration, including the time that the loop body takes.
func Entities[T any](ctx context.Context, repo *tsdb.Repository[T], p tsdb.Prefix, in tsdb.Interval, opts ...tsdb.ReadOption) iter.Seq2[tsdb.Entity, error] {
	return func(yield func(tsdb.Entity, error) bool) {
		ctx, c, err := begin(ctx, repo, telemetry.UnderEntities, p, in, opts, true)
		stopped := false
		defer func() { c.end(err) }()
		if err == nil && c.Oldest <= c.Newest {
			err = c.Entities(ctx, func(path string) bool {
				c.op.Returned(1)
				stopped = !yield(inside.Of(tsdb.Entity{}).At(path), nil)
				return !stopped
			})
		}
		if err != nil && !stopped {
			yield(tsdb.Entity{}, err)
		}
	}
}
