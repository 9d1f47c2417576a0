package window

import (
	"context"
	"iter"
	"slices"
	"time"

	"github.com/tidemark-go/tidemark/internal/ctxerr"
	"github.com/tidemark-go/tidemark/internal/inside"
	"github.com/tidemark-go/tidemark/internal/store/catalog"
	"github.com/tidemark-go/tidemark/internal/store/nest"
	"github.com/tidemark-go/tidemark/tsdb"
)

// stored is a rollup of values of type T, as this package reads it. Package rollup implements it:
// nest.Definition.Source holds the value.
type stored[T any] interface {
	// Keeps returns the width of the rollup's longest bucket, and false if the rollup does not keep what the
	// aggregator computes.
	Keeps(by *Aggregator[T]) (widest time.Duration, ok bool)
	// Divides reports whether the interval, and each bucket of the aggregator's grid in it, starts and ends where
	// buckets of the rollup do.
	Divides(by *Aggregator[T], in tsdb.Interval) bool
	// Windows returns the buckets of the aggregator.
	Windows(ctx context.Context, repo *tsdb.Repository[T], by *Aggregator[T], e tsdb.Entity, in tsdb.Interval, order tsdb.Order) iter.Seq2[Bucket, error]
	// Buckets returns the buckets of the rollup that start in an interval, oldest first.
	Buckets(ctx context.Context, repo *tsdb.Repository[T], e tsdb.Entity, in tsdb.Interval) iter.Seq2[Bucket, error]
}

// derived is a rollup of a schema that is computed from points.
type derived[T any] struct {
	stored[T]
	inside.Rollup
	def   *nest.Definition
	limit time.Time // before which it keeps nothing; zero if it keeps all
}

// derivedOf returns the derived rollups of a repository's schema.
func derivedOf[T any](ctx context.Context, repo *tsdb.Repository[T]) (found []derived[T], err error) {
	in, err := inside.Of(repo).Internals()
	if err == nil {
		err = in.Allow(ctx)
	}
	if err != nil || len(in.Rollups) == 0 {
		return nil, err
	}
	age, err := in.RollupAge(ctx)
	if err != nil {
		return nil, err
	}
	now := in.Clock()
	for _, r := range in.Rollups {
		def := inside.Held(r.Definition)
		if def == nil || r.Kind != catalog.Derived {
			continue
		}
		source, ok := def.Source.(stored[T])
		if !ok {
			continue
		}
		d := derived[T]{stored: source, Rollup: r.Within(age), def: def}
		if d.Bounded {
			d.limit = now.Add(-d.Age)
		}
		found = append(found, d)
	}
	return found, nil
}

// choose returns the rollup that answers for an interval, or nil for the points.
func (a *Aggregator[T]) choose(ctx context.Context, from Ranger[T], in tsdb.Interval) (*derived[T], error) {
	start, hasStart := in.Start()
	end, hasEnd := in.End()
	repo, ok := from.(*tsdb.Repository[T])
	if !ok || a == nil || a.opts.FromPoints || len(a.rules) == 0 || !hasStart || !hasEnd || inside.Of(in).Check() != nil || !start.Before(end) {
		return nil, nil
	}
	if slices.ContainsFunc(a.measures, func(m Measure[T]) bool { return m.Text != nil || m.Value != nil && m.Kind == State }) {
		return nil, nil // its states are texts, and a rollup keeps numbers
	}
	all, err := derivedOf(ctx, repo)
	if err != nil {
		return nil, err
	}
	var chosen *derived[T]
	var widest time.Duration
	for i := range all {
		d := &all[i]
		width, ok := d.Keeps(a)
		if ok && width > widest && !start.Before(d.limit) && d.Divides(a, in) {
			chosen, widest = d, width
		}
	}
	return chosen, nil
}

// Source returns the name of the rollup that [Aggregator.Read] takes the buckets of an interval from, and "" if it
// reads the points. It sends no request, except that a store may read the class of the tenant, which it remembers.
func (a *Aggregator[T]) Source(ctx context.Context, repo *tsdb.Repository[T], in tsdb.Interval) (rollup string, err error) {
	if err := ctxerr.Of(ctx); err != nil {
		return "", err
	}
	held, err := inside.Of(repo).Internals()
	if err == nil {
		err = held.Allow(ctx)
	}
	if err != nil {
		return "", err
	}
	d, err := a.choose(ctx, repo, in)
	if d == nil || err != nil {
		return "", err
	}
	return d.Name, nil
}
