package tsdb

import (
	"context"
	"iter"

	"github.com/tidemark-go/tidemark/internal/store/dataset"
	"github.com/tidemark-go/tidemark/internal/store/skipscan"
	"github.com/tidemark-go/tidemark/internal/telemetry"
)

// LatestUnder returns the newest visible point of every entity below a prefix, or of the whole dataset for AllEntities, as a sequence in the order of
// Entity.Compare. The caller need not know the entities. Each iteration over the sequence sends new requests, and leaving the loop ends them.
//
// The cost grows with the number of entities, not with their histories:
//
//   - Entities with short histories share requests. Expired points that Bigtable has not removed count as history.
//   - Long histories are skipped. For m entities that is at most m requests, plus one per salt, and about 16 rows per entity.
//     An entity costs one more request if its newest points expired in one retention class while older ones in another class
//     did not.
//   - The store remembers up to 4,096 entities with long histories of a tenant in a dataset. The next call reads them in shared
//     requests, 250 in each, and about one row per entity. An entity with more than 8 points since the last call ends its
//     request; one whose newest point is gone costs two more requests.
//   - A scan that needs more than 32 requests is split into up to 8 parts, which are read in parallel. A part for which the
//     loop waits through 64 more requests is split again. A split costs up to 9 requests. Salts are always read in parallel.
//   - In a schema with heads it reads one row per entity, 1,000 per request.
//
// Concurrency limits the requests under way. LatestUnder reads ahead some thousand entities, or some megabytes per part.
//
// Expiry and errors are as in Range. The read timeout bounds each request; the scan timeout bounds the iteration, including the
// time that the loop body takes.
func (r *Repository[T]) LatestUnder(ctx context.Context, p Prefix, opts ...ReadOption) iter.Seq2[Point[T], error] {
	return under(ctx, r, telemetry.LatestUnder, p, skipscan.Query{Values: true}, opts, r.decode)
}

// Entities returns the entities below a prefix that have a visible point, or all of the dataset for AllEntities, as a
// sequence in the order of Entity.Compare. Costs, options and errors are those of LatestUnder, but the service sends no
// payloads, and a point that does not decode counts as a point.
func (r *Repository[T]) Entities(ctx context.Context, p Prefix, opts ...ReadOption) iter.Seq2[Entity, error] {
	return under(ctx, r, telemetry.Entities, p, skipscan.Query{}, opts, func(h dataset.Hit) (Entity, error) {
		return Entity{path: h.Path}, nil
	})
}

// under yields what of returns for the newest visible point of each entity below a prefix.
func under[T, R any](ctx context.Context, r *Repository[T], name telemetry.Name, p Prefix, q skipscan.Query, opts []ReadOption, of func(dataset.Hit) (R, error)) iter.Seq2[R, error] {
	return func(yield func(R, error) bool) {
		ctx, op := r.begin(ctx, name)
		var failed error
		defer func() { op.End(failed) }()
		failed = r.newestUnder(ctx, p, q, opts, func(h dataset.Hit) bool {
			op.Returned(1)
			return yield(of(h))
		})
		if failed != nil {
			var none R
			yield(none, failed)
		}
	}
}

// newestUnder calls visit for the newest visible point of each entity below a prefix, in order, until it returns false. All
// calls that discover entities use it.
func (r *Repository[T]) newestUnder(ctx context.Context, p Prefix, q skipscan.Query, opts []ReadOption, visit func(dataset.Hit) bool) error {
	if err := r.admitPrefix(ctx, p); err != nil {
		return err
	}
	o, err := wideOptionsOf(opts)
	if err != nil {
		return err
	}
	done, err := r.rows.BeginWideRead(&o)
	if err != nil {
		return err
	}
	defer done()
	q.Prefix, q.Options = p.path, o
	return skipscan.Scan(ctx, &r.rows, q, visit)
}
