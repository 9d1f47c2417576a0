// Package under reads the points of all entities under a prefix: the devices of a site, or the vehicles of a fleet. The
// caller need not know the entities.
//
//   - [Range] reads the points between two times, entity by entity; [Page] does so page by page.
//   - [Merged] reads them in the order of their times.
//   - [LatestN] reads the newest points of each entity. For one point each, see tsdb.Repository.LatestUnder.
//   - [Windows] aggregates them by groups and time buckets: the sum of each site's devices by hour.
//   - [Children] lists the distinct values of the next key field: the sites, then the devices of a site.
//   - [Entities] lists the entities that have points between two times.
//   - [Silent] finds the entities that have sent nothing since a time.
//
// All calls accept a tsdb.Concurrency and a tsdb.Hedge, as those of tsdb.Repository do.
package under

import (
	"context"
	"iter"
	"strconv"

	"github.com/tidemark-go/tidemark/internal/inside"
	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/store/below"
	"github.com/tidemark-go/tidemark/internal/store/dataset"
	"github.com/tidemark-go/tidemark/internal/telemetry"
	"github.com/tidemark-go/tidemark/tsdb"
)

// ErrInvalid is tsdb.ErrInvalid: invalid argument. A *tsdb.InvalidError names the field, the value and what is allowed.
var ErrInvalid = tsdb.ErrInvalid

// call is one call under a prefix.
type call[T any] struct {
	inside.BelowRead[tsdb.Point[T]]
	op *telemetry.Op
}

// begin begins a call. The caller defers end, whether it fails or not.
func begin[T any](ctx context.Context, repo *tsdb.Repository[T], name telemetry.Name, p tsdb.Prefix, in tsdb.Interval, opts []tsdb.ReadOption, bare bool) (context.Context, *call[T], error) {
	ctx, op := inside.Of(repo).Begin(ctx, name, 0, false)
	c := &call[T]{op: op}
	var err error
	c.BelowRead, err = inside.Of(repo).Below(ctx, p, in, opts, bare)
	return ctx, c, err
}

// end ends a call with its error.
func (c *call[T]) end(err error) {
	if c.Done != nil {
		c.Done()
	}
	c.op.End(err)
}

// sequence returns the points that scan visits.
func sequence[T any](
	ctx context.Context, repo *tsdb.Repository[T], name telemetry.Name, p tsdb.Prefix, in tsdb.Interval, opts []tsdb.ReadOption,
	scan func(*below.Read, context.Context, func(dataset.Hit) bool) error,
) iter.Seq2[tsdb.Point[T], error] {
	return func(yield func(tsdb.Point[T], error) bool) {
		ctx, c, err := begin(ctx, repo, name, p, in, opts, false)
		defer func() { c.end(err) }()
		if err != nil {
			yield(tsdb.Point[T]{}, err)
			return
		}
		if c.Oldest > c.Newest || c.Limit == 0 {
			return
		}
		left, stopped := c.Limit, false
		err = scan(c.Read, ctx, func(h dataset.Hit) bool {
			c.op.Returned(1)
			left--
			stopped = !yield(c.Decode(h))
			return !stopped && left != 0
		})
		if err != nil && !stopped {
			yield(tsdb.Point[T]{}, err)
		}
	}
}

// most is how many points of each entity, entities, or points of a page a call returns.
const most = 10_000

// checkCount refuses an n that is not 1 to most.
func checkCount(n int) error {
	if n < 1 || n > most {
		return invalid.New(ErrInvalid, "n", strconv.Itoa(n), "1 to "+strconv.Itoa(most))
	}
	return nil
}

// refuseLimit refuses a tsdb.Limit, for calls that take an order only.
func refuseLimit(opts []tsdb.ReadOption) error {
	for i, opt := range opts {
		if _, ok := opt.(tsdb.Limit); ok {
			return invalid.New(ErrInvalid, "read option "+strconv.Itoa(i), "tsdb.Limit", "Order, Concurrency, Hedge or MaxStale")
		}
	}
	return nil
}
