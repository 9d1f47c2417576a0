package tsdb

import (
	"context"
	"iter"

	"github.com/tidemark-go/tidemark/internal/inside"
	"github.com/tidemark-go/tidemark/internal/store/rowkey"
	"github.com/tidemark-go/tidemark/internal/telemetry"
)

// Entities returns the entities that have a visible point in an interval, as a sequence in the order of Entity.Compare:
// the devices that a chart of that day shows, or for AllTime all devices. A point that does not decode counts as a
// point. Each iteration over the sequence sends new requests, and leaving the loop ends them.
//
// It costs as much as Latest, but the service sends no payloads. Each entity whose newest point is behind the interval
// costs another request for one point, in parallel for up to 250 entities. So an interval without an end costs nothing
// more, and one that ended long ago a request for every entity; requests for single entities are not hedged.
//
// An error is the last pair. The scan timeout bounds the iteration, including the time that the loop body takes.
func (u PrefixReader[T]) Entities(ctx context.Context, in Interval, opts ...ReadOption) iter.Seq2[Entity, error] {
	return sequence(ctx, u.part(), telemetry.UnderEntities, in, 0, opts, func(ctx context.Context, c *inside.PrefixRead, emit emit[Entity]) error {
		return c.Entities(ctx, func(path string) bool { return emit(1, Entity{path: path}, nil) })
	})
}

// Children returns the distinct values of the key field after the prefix, in the order of row keys: the sites of a
// tenant for AllEntities, then the devices of a site. Values are parts in their stored form, as in Entity.Parts. A
// value has at least one entity with a visible point. Each iteration over the sequence sends new requests, and leaving
// the loop ends them.
//
// The cost grows with the number of children, not with their entities and points: it is at most a request and 16 rows
// for each child, plus a request and 32 rows for each salt; children with few rows share requests. An entity whose
// points have all expired, and that Bigtable has not removed, costs as much as a child. For the last key field the cost
// is that of Entities. A scan that needs more than 32 requests is split into parts, as that of Latest is.
//
// An error is the last pair. The scan timeout bounds the iteration, including the time that the loop body takes.
func (u PrefixReader[T]) Children(ctx context.Context, opts ...ReadOption) iter.Seq2[string, error] {
	return sequence(ctx, u.part(), telemetry.UnderChildren, AllTime(), 0, opts, func(ctx context.Context, c *inside.PrefixRead, emit emit[string]) error {
		return c.Children(ctx, func(path string) bool {
			parts := rowkey.Parts(path)
			return emit(1, parts[len(parts)-1], nil)
		})
	})
}
