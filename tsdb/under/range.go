package under

import (
	"context"
	"iter"

	"github.com/tidemark-go/tidemark/internal/store/below"
	"github.com/tidemark-go/tidemark/internal/telemetry"
	"github.com/tidemark-go/tidemark/tsdb"
)

// Range returns the visible points of all entities under a prefix in an interval as a sequence: entity by entity in the order
// of Entity.Compare, and each entity's points newest first or in another tsdb.Order. It also takes a tsdb.Limit of points. Each
// iteration over the sequence sends new requests, and leaving the loop ends them.
//
// It finds the entities at the cost of Repository.Entities, and skips those whose newest point is older than the interval.
// Entities with few points share requests: up to 250 entities, and 4,096 points or 8 MiB of payloads each. An entity with more points costs a request
// of its own, which streams. So memory does not grow with the number of points. Range may read up to 4,096 points more per
// shared request than it yields.
//
// Errors are those of Repository.LatestUnder: a point whose payload does not decode is yielded with a *tsdb.PointError, and the
// sequence continues; any other error is the last pair. The tenant's limit on the length of ranges applies. An entity whose
// first point is written during the iteration may be missing. The scan timeout bounds the iteration, including the time that
// the loop body takes.
func Range[T any](ctx context.Context, repo *tsdb.Repository[T], p tsdb.Prefix, in tsdb.Interval, opts ...tsdb.ReadOption) iter.Seq2[tsdb.Point[T], error] {
	return sequence(ctx, repo, telemetry.UnderRange, p, in, opts, (*below.Read).ByEntity)
}

// Merged returns the points of [Range] in the order of their times, newest first or in another tsdb.Order. Points of one time
// are in the order of their entities. It also takes a tsdb.Limit of points.
//
// It finds the entities first, at the cost of Repository.Entities. It refuses, with ErrInvalid, more than 10,000 entities
// that have sent something since the interval began. Then it reads slices of time. A slice costs one request per 250 entities, or
// per 500 KB of their ranges, and at most 32,768 points or 32 MiB of payloads are in memory at once. The first slice is the whole
// interval, so a result that small is read at once. Otherwise the points that came decide the length of the next slice; Merged
// reads them again, so it reads up to 32,768 points a second time, once at the start, and again where points suddenly become dense.
// With a tsdb.Limit a slice holds twice as many points as the limit, and 1,024 to 32,768. Rows of a request and of its hedge both
// count, so a hedge can make a slice too large, which is then read again in shorter ones.
//
// If the points of one time are more than a slice holds, each entity is read there in a request of its own, one after the other.
// In a schema with Head.Only a slice reads the heads of all entities, and holds all of them in memory: up to 10,000 times
// Head.Points points, whatever their payloads.
//
// Errors are those of Range.
func Merged[T any](ctx context.Context, repo *tsdb.Repository[T], p tsdb.Prefix, in tsdb.Interval, opts ...tsdb.ReadOption) iter.Seq2[tsdb.Point[T], error] {
	return sequence(ctx, repo, telemetry.UnderMerged, p, in, opts, (*below.Read).ByTime)
}
