package tsdb

import (
	"context"
	"iter"

	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/store/dataset"
	"github.com/tidemark-go/tidemark/internal/store/skipscan"
	"github.com/tidemark-go/tidemark/internal/telemetry"
)

// LatestUnder returns the newest visible point of every entity below a prefix, or of all entities for AllEntities, as a
// sequence in the order of Entity.Compare. The entities need not be known. The requests are made when the sequence is run,
// and again each time that it is run; leaving the loop ends them.
//
// The cost grows with the entities, not with their histories, and expired points that are not collected yet count as a
// history. Short histories are read many in a request. Long ones are skipped: of m entities, at most m requests and one for
// each salt, and about 16 rows an entity. (An entity whose newest points have expired in one retention class, but not older
// ones in another, costs a request more.) What takes more than 32 requests is cut into up to 8 parts that are read side by
// side, and so is a part that the loop waits for during 64 more; a cut costs up to 9 requests. A salted dataset is always
// read side by side, one part a salt. A Concurrency bounds the requests under way. Some thousand entities, or some megabytes a
// part, are read ahead. In a schema with heads it is one row an entity, 1,000 in a request.
//
// What is visible is decided when the sequence is run. A point whose payload does not decode is yielded with its entity,
// its time and a *PointError, and the sequence goes on. Any other error is the last pair. The timeout of scans bounds the
// whole, together with the time that its consumer takes, that of reads each request.
func (r *Repository[T]) LatestUnder(ctx context.Context, p Prefix, opts ...ReadOption) iter.Seq2[Point[T], error] {
	return func(yield func(Point[T], error) bool) {
		ctx, op := r.begin(ctx, telemetry.LatestUnder)
		var failed error
		defer func() { op.End(failed) }()
		for h, err := range r.newestUnder(ctx, p, skipscan.Query{Values: true}, opts) {
			if failed = err; err != nil {
				yield(Point[T]{}, err)
				return
			}
			op.Returned(1)
			point, bad := r.decode(h)
			if bad != nil {
				err = bad
			}
			if !yield(point, err) {
				return
			}
		}
	}
}

// Entities returns the entities below a prefix, or all of them for AllEntities, that have a visible point, as a sequence in
// the order of Entity.Compare. Costs, options and errors are those of LatestUnder; no payload is sent, and a point that does
// not decode counts as one.
func (r *Repository[T]) Entities(ctx context.Context, p Prefix, opts ...ReadOption) iter.Seq2[Entity, error] {
	return func(yield func(Entity, error) bool) {
		ctx, op := r.begin(ctx, telemetry.Entities)
		var failed error
		defer func() { op.End(failed) }()
		for h, err := range r.newestUnder(ctx, p, skipscan.Query{}, opts) {
			if failed = err; err != nil {
				yield(Entity{}, err)
				return
			}
			op.Returned(1)
			if !yield(Entity{path: h.Path}, nil) {
				return
			}
		}
	}
}

// decode makes a point of what a scan has found.
func (r *Repository[T]) decode(h dataset.Hit) (Point[T], *PointError) {
	p := Point[T]{Entity: Entity{path: h.Path}, Time: r.schema.d.Precision.Time(h.Units), ID: h.ID}
	err := h.Err
	if err == nil {
		p.Value, err = r.schema.decoders[h.Tag](h.Payload)
	}
	if err != nil {
		return p, &PointError{Entity: p.Entity, Time: p.Time, ID: p.ID, Err: err}
	}
	return p, nil
}

// admitPrefix is admit for a call on the entities below a prefix.
func (r *Repository[T]) admitPrefix(ctx context.Context, p Prefix) error {
	if err := r.admit(ctx); err != nil {
		return err
	}
	if p.path == "" && !p.all {
		return invalid.New(ErrInvalid, "prefix", "empty", "at least one part, or AllEntities")
	}
	return r.rows.Space.CheckPrefix(p.path)
}

// newestUnder finds the newest visible point of each entity below a prefix, in order. All reads of entities that are not known
// come through here.
func (r *Repository[T]) newestUnder(ctx context.Context, p Prefix, q skipscan.Query, opts []ReadOption) iter.Seq2[dataset.Hit, error] {
	return func(yield func(dataset.Hit, error) bool) {
		if err := r.admitPrefix(ctx, p); err != nil {
			yield(dataset.Hit{}, err)
			return
		}
		o, err := wideOptionsOf(opts)
		if err != nil {
			yield(dataset.Hit{}, err)
			return
		}
		done, err := r.rows.BeginWideRead(&o)
		if err != nil {
			yield(dataset.Hit{}, err)
			return
		}
		defer done()
		q.Prefix, q.Options = p.path, o
		if err := skipscan.Scan(ctx, &r.rows, q, func(h dataset.Hit) bool { return yield(h, nil) }); err != nil {
			yield(dataset.Hit{}, err)
		}
	}
}
