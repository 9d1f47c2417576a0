package under

import (
	"context"
	"iter"

	"github.com/tidemark-go/tidemark/internal/store/rowkey"
	"github.com/tidemark-go/tidemark/internal/telemetry"
	"github.com/tidemark-go/tidemark/tsdb"
)

// Children returns the distinct values of the key field after a prefix, in the order of row keys: the sites of a tenant for
// tsdb.AllEntities, then the devices of a site. Values are parts in their stored form, as in Entity.Parts. A value has at least
// one entity with a visible point. Each iteration over the sequence sends new requests, and leaving the loop ends them.
//
// The cost grows with the number of children, not with their entities and points: it is at most a request and 16 rows for each
// child, plus a request and 32 rows for each salt; children with few rows share requests. An entity whose points have all expired,
// and that Bigtable has not removed, costs as much as a child. For the last key field the cost is that of Repository.Entities. A
// scan that needs more than 32 requests is split into parts, as that of Repository.LatestUnder is.
//
// It accepts a tsdb.Concurrency and a tsdb.Hedge. An error is the last pair. The scan timeout bounds the iteration, including the
// time that the loop body takes.
func Children[T any](ctx context.Context, repo *tsdb.Repository[T], p tsdb.Prefix, opts ...tsdb.ReadOption) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		ctx, c, err := begin(ctx, repo, telemetry.UnderChildren, p, tsdb.AllTime(), opts, true)
		stopped := false
		defer func() { c.end(err) }()
		if err == nil {
			err = c.Children(ctx, func(path string) bool {
				c.op.Returned(1)
				parts := rowkey.Parts(path)
				stopped = !yield(parts[len(parts)-1], nil)
				return !stopped
			})
		}
		if err != nil && !stopped {
			yield("", err)
		}
	}
}
