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
	"github.com/tidemark-go/tidemark/tsdb/follow"
	"github.com/tidemark-go/tidemark/tsdb/under"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

func init() {
	maps.Copy(attacks, underAttacks)
	maps.Copy(attacks, followAttacks)
}

// underAttacks are the attacks on package under.
var underAttacks = map[string]func(h *walls, a attack) error{
	"under.Range": func(h *walls, a attack) error {
		prefix, part := a.prefix(h)
		return h.histories("under.Range", a, part, under.Range(a.ctx, a.repo, prefix, tsdb.AllTime()))
	},
	"under.Merged": func(h *walls, a attack) error {
		prefix, part := a.prefix(h)
		return h.histories("under.Merged", a, part, under.Merged(a.ctx, a.repo, prefix, tsdb.AllTime(), tsdb.OldestFirst))
	},
	"under.LatestN": func(h *walls, a attack) error {
		prefix, part := a.prefix(h)
		return h.histories("under.LatestN", a, part, func(yield func(tsdb.Point[string], error) bool) {
			for history, err := range under.LatestN(a.ctx, a.repo, prefix, 1000) {
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
	"under.Page": func(h *walls, a attack) error {
		prefix, part := a.prefix(h)
		unit := rowkey.Nanoseconds
		if a.dataset == "acme" {
			unit = rowkey.Milliseconds
		}
		mine := cursor.Scope{Kind: cursor.Below, Tenant: "acme2", Dataset: a.dataset, Precision: byte(unit), Newest: unit.Max()}
		place := append([]byte{byte(len(inside.Of(a.entity).Path()))}, inside.Of(a.entity).Path()...)
		forged := cursor.Box{}.Write(mine, append(place, 0, 0, 0, 0, 0, 0, 0, 1))
		switch _, err := under.Page(a.ctx, a.repo, tsdb.AllEntities(), tsdb.AllTime(), 5, forged); {
		case err == nil && a.id.String() != "acme2":
			return errors.New("a forged cursor of acme2 is taken")
		case errors.Is(err, tsdb.ErrCursor) && a.id.String() == "acme2" && !h.views: // with keys, none can be forged
			return errors.New("the forged cursor is not one, so this attack proves nothing")
		case err != nil && !errors.Is(err, tsdb.ErrCursor):
			return err
		}
		return h.histories("under.Page", a, part, func(yield func(tsdb.Point[string], error) bool) {
			for next, more := "", true; more; more = next != "" {
				page, err := under.Page(a.ctx, a.repo, prefix, tsdb.AllTime(), 1+h.IntN(3), next)
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
	"under.Windows": (*walls).windowsAttack,
	"under.Entities": func(h *walls, a attack) error {
		prefix, part := a.prefix(h)
		var got, want []string
		for e, err := range under.Entities(a.ctx, a.repo, prefix, tsdb.Until(a.at.Add(1))) {
			if err != nil {
				return err
			}
			got = append(got, e.String())
		}
		for _, p := range h.of(a.id, a.dataset, part) {
			if len(h.want(p, a.at)) > 0 {
				want = append(want, p.entity.String())
			}
		}
		slices.Sort(got)
		slices.Sort(want)
		h.same("under.Entities", got, want)
		return nil
	},
	"under.Children": func(h *walls, a attack) error {
		prefix, part := a.prefix(h)
		var got, want []string
		for child, err := range under.Children(a.ctx, a.repo, prefix) {
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
		h.same("under.Children", got, slices.Compact(want))
		return nil
	},
	"under.Silent": func(h *walls, a attack) error {
		prefix, part := a.prefix(h)
		silent, err := under.Silent(a.ctx, a.repo, prefix, far.AddDate(1, 0, 0), 1000)
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
		h.same("under.Silent", got, want)
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
	for g, err := range under.Windows(a.ctx, a.repo, century, prefix, 0, all) {
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
	h.same("under.Windows", slices.Compact(got), slices.Compact(want))
	if points != wantPoints {
		return fmt.Errorf("under.Windows counts %d points, want %d", points, wantPoints)
	}
	return nil
}

// followAttacks are the attacks on package follow.
var followAttacks = map[string]func(h *walls, a attack) error{
	"follow.Entity": func(h *walls, a attack) error {
		f, err := follow.Entity(a.ctx, a.repo, a.entity, follow.Options{Since: time.Unix(0, 0)})
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
		h.same("follow.Entity", got, want)
		return nil
	},
	"follow.Under": func(h *walls, a attack) error { return h.followed(a.ctx, a) },
	"follow.Follower.Points": func(h *walls, a attack) error {
		return h.followed(h.t.Context(), a)
	},
}

// followed compares all that a follower delivers, opened in one context and read in another, with what the tenant has stored.
func (h *walls) followed(ctx context.Context, a attack) error {
	prefix, part := a.prefix(h)
	f, err := follow.Under(ctx, a.repo, prefix, follow.Options{Since: time.Unix(0, 0)})
	if err != nil { // erased: there is no loop, so the other context must be refused here
		f, err = follow.Under(a.ctx, a.repo, prefix, follow.Options{Since: time.Unix(0, 0)})
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
	return h.histories("follow.Under", a, part, func(yield func(tsdb.Point[string], error) bool) {
		for _, v := range got {
			if !yield(tsdb.Point[string]{Value: v}, nil) {
				return
			}
		}
	})
}

// arrivals returns the values of the next n points. With n = 0 it looks only whether the loop is refused.
func arrivals(f *follow.Follower[string], ctx context.Context, n int) (got []string, err error) {
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
