package tsdb_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/tidemark-go/tidemark/internal/cursor"
	"github.com/tidemark-go/tidemark/internal/inside"
	"github.com/tidemark-go/tidemark/internal/store/rowkey"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

func init() {
	maps.Copy(attacks, underAttacks)
	maps.Copy(attacks, followAttacks)
}

// underAttacks are the attacks on reads of all entities under a prefix.
var underAttacks = map[string]func(h *walls, a attack) error{
	"PrefixReader.Range": func(h *walls, a attack) error {
		prefix, part := a.prefix(h)
		return h.histories("PrefixReader.Range", a, part, a.repo.Under(prefix).Range(a.ctx, tsdb.AllTime()))
	},
	"PrefixReader.Merged": func(h *walls, a attack) error {
		prefix, part := a.prefix(h)
		return h.histories("PrefixReader.Merged", a, part, a.repo.Under(prefix).Merged(a.ctx, tsdb.AllTime(), tsdb.OldestFirst))
	},
	"PrefixReader.LatestN": func(h *walls, a attack) error {
		prefix, part := a.prefix(h)
		return h.histories("PrefixReader.LatestN", a, part, func(yield func(tsdb.Point[string], error) bool) {
			for history, err := range a.repo.Under(prefix).LatestN(a.ctx, 1000) {
				if err != nil {
					yield(tsdb.Point[string]{}, err)
					return
				}
				for _, p := range history.Points {
					if !yield(p, nil) {
						return
					}
				}
			}
		})
	},
	"PrefixReader.Page": func(h *walls, a attack) error {
		prefix, part := a.prefix(h)
		unit := rowkey.Nanoseconds
		if a.dataset == "acme" {
			unit = rowkey.Milliseconds
		}
		mine := cursor.Scope{Kind: cursor.UnderPrefix, Tenant: "acme2", Dataset: a.dataset, Precision: byte(unit), Newest: unit.Max()}
		place := append([]byte{byte(len(inside.Of(a.entity).Path()))}, inside.Of(a.entity).Path()...)
		forged := cursor.Box{}.Write(mine, append(place, 0, 0, 0, 0, 0, 0, 0, 1))
		switch _, err := a.repo.Under(tsdb.AllEntities()).Page(a.ctx, tsdb.AllTime(), 5, forged); {
		case err == nil && a.id.String() != "acme2":
			return errors.New("a forged cursor of acme2 is taken")
		case errors.Is(err, tsdb.ErrCursor) && a.id.String() == "acme2" && !h.views: // with keys, none can be forged
			return errors.New("the forged cursor is not one, so this attack proves nothing")
		case err != nil && !errors.Is(err, tsdb.ErrCursor):
			return err
		}
		return h.histories("PrefixReader.Page", a, part, func(yield func(tsdb.Point[string], error) bool) {
			for next, more := "", true; more; more = next != "" {
				page, err := a.repo.Under(prefix).Page(a.ctx, tsdb.AllTime(), 1+h.IntN(3), next)
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
		})
	},
	"window.Aggregator.ReadGroups": (*walls).windowsAttack,
	"PrefixReader.Entities": func(h *walls, a attack) error {
		prefix, part := a.prefix(h)
		in, until := tsdb.Until(a.at.Add(1)), a.at
		if h.IntN(2) == 0 {
			in, until = tsdb.AllTime(), far
		}
		var got, want []string
		for e, err := range a.repo.Under(prefix).Entities(a.ctx, in) {
			if err != nil {
				return err
			}
			got = append(got, e.String())
		}
		for _, p := range h.of(a.id, a.dataset, part) {
			if len(h.want(p, until)) > 0 {
				want = append(want, p.entity.String())
			}
		}
		slices.Sort(got)
		slices.Sort(want)
		h.same("PrefixReader.Entities", got, want)
		return nil
	},
	"PrefixReader.Children": func(h *walls, a attack) error {
		prefix, part := a.prefix(h)
		var got, want []string
		for child, err := range a.repo.Under(prefix).Children(a.ctx) {
			if err != nil {
				return err
			}
			got = append(got, child)
		}
		for _, p := range h.of(a.id, a.dataset, part) {
			want = append(want, p.entity.Parts()[len(prefix.Parts())])
		}
		slices.Sort(got)
		slices.Sort(want)
		h.same("PrefixReader.Children", got, slices.Compact(want))
		return nil
	},
	"PrefixReader.Silent": func(h *walls, a attack) error {
		prefix, part := a.prefix(h)
		silent, err := a.repo.Under(prefix).Silent(a.ctx, far.AddDate(1, 0, 0), 1000)
		if err != nil {
			return err
		}
		var got, want []string
		for _, s := range silent {
			got = append(got, s.Entity.String())
		}
		for _, p := range h.of(a.id, a.dataset, part) {
			want = append(want, p.entity.String())
		}
		slices.Sort(got)
		slices.Sort(want)
		h.same("PrefixReader.Silent", got, want)
		return nil
	},
}

// windowsAttack compares the states of all groups, which are the values, with all that the tenant has stored.
func (h *walls) windowsAttack(a attack) error {
	prefix, part := a.prefix(h)
	text := func(v string) (string, bool) { return v, true }
	century, err := window.New(window.Months(1200), []window.Measure[string]{{Name: "v", Kind: window.State, Text: text}}, window.Options{})
	if err != nil {
		return err
	}
	var got, want []string
	points, wantPoints := int64(0), int64(0)
	all := tsdb.Between(time.Unix(0, 0), far)
	for g, err := range century.ReadGroups(a.ctx, a.repo.Under(prefix), 0, all) {
		if err != nil {
			return err
		}
		for _, b := range g.Buckets {
			points += b.Points
			for _, s := range b.Values[0].States.Times {
				got = append(got, s.State)
			}
		}
	}
	for _, p := range h.of(a.id, a.dataset, part) {
		values := h.want(p, far.Add(-1))
		wantPoints += int64(len(values))
		want = append(want, values...)
	}
	slices.Sort(got)
	slices.Sort(want)
	h.same("window.Aggregator.ReadGroups", slices.Compact(got), slices.Compact(want))
	if points != wantPoints {
		return fmt.Errorf("window.Aggregator.ReadGroups counts %d points, want %d", points, wantPoints)
	}
	return nil
}

// followAttacks are the attacks on followers.
var followAttacks = map[string]func(h *walls, a attack) error{
	"Repository.Follow": func(h *walls, a attack) error {
		f, err := a.repo.Follow(a.ctx, a.entity, tsdb.FollowOptions{Since: time.Unix(0, 0)})
		if err != nil {
			return err
		}
		defer f.Close()
		want := h.want(a.place, far)
		got, err := arrivals(f, a.ctx, len(want))
		if err != nil {
			return err
		}
		slices.Sort(got)
		slices.Sort(want)
		h.same("Repository.Follow", got, want)
		return nil
	},
	"PrefixReader.Follow": func(h *walls, a attack) error { return h.followed(a.ctx, a) },
	"Follower.Points": func(h *walls, a attack) error {
		return h.followed(h.t.Context(), a)
	},
}

// followed compares all that a follower delivers, opened in one context and read in another, with what the tenant has
// stored.
func (h *walls) followed(ctx context.Context, a attack) error {
	prefix, part := a.prefix(h)
	f, err := a.repo.Under(prefix).Follow(ctx, tsdb.FollowOptions{Since: time.Unix(0, 0)})
	if err != nil { // erased: there is no loop, so the other context must be refused here
		f, err = a.repo.Under(prefix).Follow(a.ctx, tsdb.FollowOptions{Since: time.Unix(0, 0)})
	}
	if err != nil {
		return err
	}
	defer f.Close()
	n := 0
	for _, p := range h.of(a.id, a.dataset, part) {
		n += len(h.want(p, far))
	}
	got, err := arrivals(f, a.ctx, n)
	if err != nil {
		return err
	}
	return h.histories("PrefixReader.Follow", a, part, func(yield func(tsdb.Point[string], error) bool) {
		for _, v := range got {
			if !yield(tsdb.Point[string]{Value: v}, nil) {
				return
			}
		}
	})
}

// arrivals returns the values of the next n points. With n = 0 it looks only whether the loop is refused.
func arrivals(f *tsdb.Follower[string], ctx context.Context, n int) (got []string, err error) {
	if n == 0 {
		over, cancel := context.WithCancel(ctx)
		defer cancel()
		time.AfterFunc(time.Millisecond, cancel)
		ctx = over
	}
	for p, err := range f.Points(ctx) {
		if n == 0 && errors.Is(err, context.Canceled) {
			return nil, nil
		}
		if err != nil {
			return got, err
		}
		if got = append(got, p.Value); len(got) >= n {
			break
		}
	}
	return got, nil
}

// histories compares points with all that the tenant has stored below a first part.
func (h *walls) histories(call string, a attack, part string, points iter.Seq2[tsdb.Point[string], error]) error {
	var got, want []string
	for p, err := range points {
		if err != nil {
			return err
		}
		got = append(got, p.Value)
	}
	for _, p := range h.of(a.id, a.dataset, part) {
		want = append(want, h.want(p, far)...)
	}
	slices.Sort(got)
	slices.Sort(want)
	h.same(call, got, want)
	return nil
}
