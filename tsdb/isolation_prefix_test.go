package tsdb_test

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tidemark-go/tidemark/tenant/limit"
	"github.com/tidemark-go/tidemark/tsdb"
)

func init() {
	maps.Copy(operations, prefixOperations)
	maps.Copy(limitsOf, prefixLimits)
}

// prefixLimits are the limits of prefixOperations.
var prefixLimits = map[string][]limit.ID{
	"Under.Range": rangeLimits, "Under.Merged": rangeLimits, "Under.Page": rangeLimits,
	"Under.LatestN": readLimits, "Under.Children": readLimits, "Under.Silent": readLimits, "Under.Follow": readLimits,
}

// prefixOperations are more operations: the calls of a PrefixReader on the first part of an entity, and on all
// entities.
var prefixOperations = map[string]func(ctx context.Context, r *tsdb.Repository[string], e tsdb.Entity, at time.Time) (seen []string, err error){
	"Under.Range": ofPrefixes(func(ctx context.Context, u tsdb.PrefixReader[string]) iter.Seq2[tsdb.Point[string], error] {
		return u.Range(ctx, tsdb.AllTime())
	}),
	"Under.Merged": ofPrefixes(func(ctx context.Context, u tsdb.PrefixReader[string]) iter.Seq2[tsdb.Point[string], error] {
		return u.Merged(ctx, tsdb.AllTime(), tsdb.OldestFirst)
	}),
	"Under.Page": ofPrefixes(func(ctx context.Context, u tsdb.PrefixReader[string]) iter.Seq2[tsdb.Point[string], error] {
		return func(yield func(tsdb.Point[string], error) bool) {
			for next := "-"; next != ""; {
				page, err := u.Page(ctx, tsdb.AllTime(), 3, strings.TrimPrefix(next, "-"))
				if err != nil {
					yield(tsdb.Point[string]{}, err)
					return
				}
				for _, p := range page.Points {
					if !yield(p, nil) {
						return
					}
				}
				next = page.Next
			}
		}
	}),
	"Under.LatestN": ofPrefixes(func(ctx context.Context, u tsdb.PrefixReader[string]) iter.Seq2[tsdb.Point[string], error] {
		return func(yield func(tsdb.Point[string], error) bool) {
			for h, err := range u.LatestN(ctx, 1000) {
				if err != nil {
					yield(tsdb.Point[string]{}, err)
					return
				}
				for _, p := range h.Points {
					if !yield(p, nil) {
						return
					}
				}
			}
		}
	}),
	"Under.Follow": func(ctx context.Context, r *tsdb.Repository[string], e tsdb.Entity, at time.Time) (seen []string, err error) {
		return ofPrefixes(func(ctx context.Context, u tsdb.PrefixReader[string]) iter.Seq2[tsdb.Point[string], error] {
			return func(yield func(tsdb.Point[string], error) bool) {
				f, err := u.Follow(ctx, tsdb.FollowOptions{Since: start})
				if err != nil {
					yield(tsdb.Point[string]{}, err)
					return
				}
				defer f.Close()
				for p, err := range f.Points(ctx) {
					if !yield(p, err) || err != nil || p.Entity == e {
						return
					}
				}
			}
		})(ctx, r, e, at)
	},
	"Under.Silent": func(ctx context.Context, r *tsdb.Repository[string], e tsdb.Entity, at time.Time) ([]string, error) {
		var found [2][]tsdb.Entity
		for i, prefix := range []tsdb.Prefix{tsdb.AllEntities(), tsdb.NewPrefix(e.Parts()[0])} {
			silent, err := r.Under(prefix).Silent(ctx, at.AddDate(1, 0, 0), 1000)
			if err != nil {
				return nil, err
			}
			for _, s := range silent {
				found[i] = append(found[i], s.Entity)
				if i == 1 && s.Entity.Parts()[0] != e.Parts()[0] {
					return []string{s.Entity.String()}, nil
				}
			}
		}
		if len(found[0]) != len(hostileEntities) || !slices.Contains(found[1], e) {
			return nil, fmt.Errorf("silent entities are %v, below the prefix %v", found[0], found[1])
		}
		return nil, nil
	},
	"Under.Children": func(ctx context.Context, r *tsdb.Repository[string], e tsdb.Entity, _ time.Time) ([]string, error) {
		for i, prefix := range []tsdb.Prefix{tsdb.AllEntities(), tsdb.NewPrefix(e.Parts()[0])} {
			var got, want []string
			for child, err := range r.Under(prefix).Children(ctx) {
				if err != nil {
					return nil, err
				}
				got = append(got, child)
			}
			for _, parts := range hostileEntities {
				if i == 0 || parts[0] == e.Parts()[0] {
					want = append(want, parts[i])
				}
			}
			slices.Sort(got)
			slices.Sort(want)
			if want = slices.Compact(want); !slices.Equal(got, want) {
				return nil, fmt.Errorf("the children of %v are %q, want %q", prefix, got, want)
			}
		}
		return nil, nil
	},
}

// ofPrefixes returns an operation that reads the points of both prefixes. It returns those of the entity, and the first
// one that another tenant or dataset has stored.
func ofPrefixes(read func(context.Context, tsdb.PrefixReader[string]) iter.Seq2[tsdb.Point[string], error]) func(context.Context, *tsdb.Repository[string], tsdb.Entity, time.Time) ([]string, error) {
	return func(ctx context.Context, r *tsdb.Repository[string], e tsdb.Entity, _ time.Time) (seen []string, err error) {
		for _, prefix := range []tsdb.Prefix{tsdb.NewPrefix(e.Parts()[0]), tsdb.AllEntities()} {
			before := len(seen)
			for p, err := range read(ctx, r.Under(prefix)) {
				if err != nil {
					return seen, err
				}
				switch {
				case prefix != tsdb.AllEntities() && p.Entity.Parts()[0] != e.Parts()[0]:
					return append(seen, p.Entity.String()), nil
				case p.Entity == e:
					seen = append(seen, p.Value)
				case p.Value != label(r.Tenant().String(), r.Schema().Name(), p.Entity.Parts()):
					return append(seen, p.Value), nil
				}
			}
			if len(seen) == before {
				return nil, fmt.Errorf("%v was not seen under %v", e, prefix)
			}
		}
		return seen, nil
	}
}
