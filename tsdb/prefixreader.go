package tsdb

import (
	"context"
	"iter"

	"github.com/tidemark-go/tidemark/internal/inside"
	"github.com/tidemark-go/tidemark/internal/store/dataset"
	"github.com/tidemark-go/tidemark/internal/store/prefix"
	"github.com/tidemark-go/tidemark/internal/telemetry"
)

// PrefixReader reads all entities under a prefix: the devices of a site, or the vehicles of a fleet. The caller need
// not know the entities. Repository.Under makes one, without I/O. It is safe for concurrent use. The calls of the zero
// PrefixReader fail with ErrInvalid.
//
//   - Latest and LatestN read the newest points of each entity, PageLatest those of one page of entities.
//   - LatestFields reads the newest value of each field of each entity.
//   - Range reads the points between two times, entity by entity; Page does so page by page, and Merged in the order of their times.
//   - Entities and PageEntities list the entities, and Children the distinct values of the next key field.
//   - Silent finds the entities that have sent nothing since a time.
//   - Follow delivers new points as they arrive.
//
// All calls but Follow accept a Concurrency and a Hedge.
type PrefixReader[T any] struct {
	prefixReaderGate[T]

	repo   *Repository[T]
	prefix Prefix
}

// Under returns a reader of all entities under a prefix, or of the whole dataset for AllEntities.
func (r *Repository[T]) Under(p Prefix) PrefixReader[T] { return PrefixReader[T]{repo: r, prefix: p} }

// Range returns the visible points of all entities in an interval as a sequence: entity by entity in the order of
// Entity.Compare, and each entity's points newest first or in another Order. It also takes a Limit of points. Each
// iteration over the sequence sends new requests, and leaving the loop ends them.
//
// It finds the entities at the cost of Entities, and skips those whose newest point is older than the interval.
// Entities with few points share requests: up to 250 entities, and 4,096 points or 8 MiB of payloads each. An entity
// with more points costs a request of its own, which streams. So memory does not grow with the number of points. Range
// may read up to 4,096 points more per shared request than it yields.
//
// Errors are those of Latest. The tenant's limit on the length of ranges applies. An entity whose first point is
// written during the iteration may be missing. The scan timeout bounds the iteration, including the time that the loop
// body takes.
func (u PrefixReader[T]) Range(ctx context.Context, in Interval, opts ...ReadOption) iter.Seq2[Point[T], error] {
	return pointsUnder(ctx, u, telemetry.UnderRange, in, opts, (*prefix.Read).ByEntity)
}

// Merged returns the points of Range in the order of their times, newest first or in another Order. Points of one time
// are in the order of their entities. It also takes a Limit of points.
//
// It finds the entities first, at the cost of Entities. It refuses, with ErrInvalid, more than 10,000 entities that
// have sent something since the interval began. Then it reads slices of time. A slice costs one request per 250
// entities, or per 500 KB of their ranges, and at most 32,768 points or 32 MiB of payloads are in memory at once. The
// first slice is the whole interval, so a result that small is read at once. Otherwise the points that came decide the
// length of the next slice; Merged reads them again, so it reads up to 32,768 points a second time, once at the start,
// and again where points suddenly become dense. With a Limit a slice holds twice as many points as the limit, and 1,024
// to 32,768. Rows of a request and of its hedge both count, so a hedge can make a slice too large, which is then read
// again in shorter ones.
//
// If the points of one time are more than a slice holds, each entity is read there in a request of its own, one after
// the other. In a schema with Head.Only a slice reads the heads of all entities, and holds all of them in memory: up to
// 10,000 times Head.Points points, whatever their payloads.
//
// Errors are those of Range.
func (u PrefixReader[T]) Merged(ctx context.Context, in Interval, opts ...ReadOption) iter.Seq2[Point[T], error] {
	return pointsUnder(ctx, u, telemetry.UnderMerged, in, opts, (*prefix.Read).ByTime)
}

func pointsUnder[T any](
	ctx context.Context, u PrefixReader[T], name telemetry.Name, in Interval, opts []ReadOption,
	scan func(*prefix.Read, context.Context, func(dataset.Hit) bool) error,
) iter.Seq2[Point[T], error] {
	return sequence(ctx, u.part(), name, in, orderOption|limitOption, opts, func(ctx context.Context, c *inside.PrefixRead, emit emit[Point[T]]) error {
		if c.Limit == 0 {
			return nil
		}
		left := c.Limit
		return scan(c.Read, ctx, func(h dataset.Hit) bool {
			left--
			p, err := u.repo.decode(h)
			return emit(1, p, err) && left != 0
		})
	})
}

// under is all of a PrefixReader that does not depend on the type of the values.
type under struct {
	*access
	prefix Prefix
}

func (u PrefixReader[T]) part() under { return under{u.repo.part(), u.prefix} }

// emit yields an element of a sequence that holds n points or entities, and reports whether the loop goes on.
type emit[R any] func(n int, element R, err error) bool

// sequence returns what scan emits. Scan does not run if the interval holds no time.
func sequence[R any](
	ctx context.Context, u under, name telemetry.Name, in Interval, takes optionSet, opts []ReadOption,
	scan func(context.Context, *inside.PrefixRead, emit[R]) error,
) iter.Seq2[R, error] {
	return func(yield func(R, error) bool) {
		ctx, c, err := u.beginRead(ctx, name, in, takes, opts)
		defer func() { c.End(err) }()
		stopped := false
		if err == nil && c.Oldest <= c.Newest {
			err = scan(ctx, &c, func(n int, element R, err error) bool {
				c.Op.Returned(n)
				stopped = !yield(element, err)
				return !stopped
			})
		}
		if err != nil && !stopped {
			var none R
			yield(none, err)
		}
	}
}

// beginRead begins a call. The caller defers End of the result, also with an error. A call without an order reads no
// payloads by time, so its interval counts against no limit of the tenant.
func (u under) beginRead(ctx context.Context, name telemetry.Name, in Interval, takes optionSet, opts []ReadOption) (context.Context, inside.PrefixRead, error) {
	ctx, op := u.begin(ctx, name)
	c := inside.PrefixRead{Op: op, Limit: -1}
	if err := u.admitPrefix(ctx, u.prefix); err != nil {
		return ctx, c, err
	}
	o, err := readOptionsOf(takes, opts)
	if err == nil {
		err = in.check()
	}
	if err == nil && takes&orderOption != 0 {
		err = u.admitSpan(in)
	}
	if err != nil {
		return ctx, c, err
	}
	if o.Width == 0 {
		o.Width = defaultConcurrency
	}
	oldest, newest := in.units(u.rows.D.Precision)
	if c.Done, err = u.rows.BeginWideRead(&o.Options); err != nil {
		return ctx, c, err
	}
	c.Read = &prefix.Read{Rows: &u.rows, Prefix: u.prefix.path, Oldest: oldest, Newest: newest, Reverse: o.order == OldestFirst, Options: o.Options}
	if o.limited {
		c.Limit, c.Most = o.limit, o.limit
	}
	return ctx, c, nil
}
