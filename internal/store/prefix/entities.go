package prefix

import (
	"context"

	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/store/dataset"
	"github.com/tidemark-go/tidemark/internal/store/points"
	"github.com/tidemark-go/tidemark/internal/store/skipscan"
)

// Entities yields the paths of the entities that have a visible point in the interval, in order, until visit returns
// false. Where the newest point of an entity is behind the interval, another request looks for one in it: for a group
// of entities at once.
func (r *Read) Entities(ctx context.Context, visit func(path string) bool) error {
	ctx, done := r.Rows.View.Bound(ctx, true)
	defer done()
	g := group{Read: r, ctx: ctx, slots: make(skipscan.Slots, r.Options.Width), want: firstGroup, visit: visit}
	err := r.entities(ctx, "", 0, g.slots, func(h dataset.Hit) bool {
		g.add(h.Path, h.Units <= r.Newest)
		return !g.stopped && g.err == nil
	})
	if err == nil && !g.stopped && g.err == nil {
		g.flush()
	}
	if g.err != nil {
		return g.err
	}
	return err
}

// group is the entities that wait for requests.
type group struct {
	*Read
	ctx     context.Context
	slots   skipscan.Slots
	visit   func(path string) bool
	members []candidate
	want    int // members that are looked at together
	stopped bool
	err     error
}

type candidate struct {
	path  string
	found bool // it has a point in the interval
}

// add visits an entity, or lets it wait behind others.
func (g *group) add(path string, found bool) {
	if found && len(g.members) == 0 {
		g.stopped = !g.visit(path)
		return
	}
	if g.members = append(g.members, candidate{path, found}); len(g.members) >= g.want {
		g.flush()
	}
}

// flush looks for the points of members, and visits those that have one.
func (g *group) flush() {
	errs := make([]error, len(g.members))
	bt.AtOnce(g.Options.Width, len(g.members), func(i int) {
		if m := &g.members[i]; !m.found {
			errs[i] = g.look(m)
		}
	})
	for i, m := range g.members {
		if g.err = errs[i]; g.err != nil || g.stopped {
			break
		}
		g.stopped = m.found && !g.visit(m.path)
	}
	g.members, g.want = nil, min(points.MostRanges, 2*g.want)
}

// look reads a point of an entity in the interval.
func (g *group) look(m *candidate) error {
	leave, err := g.slots.Enter(g.ctx, g.Rows.Table)
	if err != nil {
		return err
	}
	defer leave()
	s := g.span(m.path, g.Oldest, g.Newest)
	s.Limit = 1
	return g.Rows.Scan(g.ctx, s, func(*points.Found) bool {
		m.found = true
		return false
	})
}
