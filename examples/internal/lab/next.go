package lab

import (
	"fmt"
	"math"
	"slices"

	"github.com/tidemark-go/tidemark/examples/internal/tablets"
)

// next says what to change in a candidate. It advises salts only where they are all that is missing: one place gets
// more than a node takes, and the file's nodes could do all the work if it were spread.
func next(p *Plan, c *candidate, m *Measured, s *Simulated, res *tablets.Result) []string {
	out := []string{}
	l := c.keys[0]
	at := slices.IndexFunc(l.elements, element.isTime)
	timeFirst := false
	for i := range p.datasets[0].fields {
		timeFirst = timeFirst || !slices.Contains(l.elements[:at], element{fieldElement, i})
	}
	switch {
	case timeFirst && s.Nodes == 0:
		out = append(out, "Another leading field: put the fields of the entity before the time. All writes with the same beginning go to one place, and no split divides it.")
		if need := int(math.Ceil(res.Need.FrontCPU / 0.6)); need <= mostSalts && l.salts < need && res.Need.CPU <= float64(p.nodes) {
			out = append(out, fmt.Sprintf("If the time has to come first, salt(%d) before it spreads the writes, and each read of all becomes as many ranges.", max(need, 2)))
		}
	case timeFirst:
		out = append(out, "The time comes before the entity, so a read of one entity looks at the rows of others: its cost grows with the number of entities.")
	case s.Nodes == 0:
		out = append(out, "One entity gets more writes than a node takes. Salts do not divide an entity: add a key field that does, or write less often.")
	}
	if s.Nodes > 0 && (s.Balanced > lateFirst || s.Balanced < 0) {
		out = append(out, fmt.Sprintf("Pre-split: create the table with %d tablets or more, divided evenly by entity, so that the first minutes are served.", max(res.Tablets/2, 2)))
	}
	if s.Nodes > p.nodes {
		out = append(out, fmt.Sprintf("More nodes: the hottest period needs %s, and the file has %d.", nodes(s.Nodes), p.nodes))
	}
	if m == nil || !c.native() {
		return out
	}
	for i, q := range m.Queries {
		switch of := p.queries[i]; {
		case of.kind == latestMany && c.heads == 0 && q.Requests > 2:
			out = append(out, fmt.Sprintf("Heads: %s takes %s requests; with heads: 1 it takes one, and each write sets one row more.", q.Query, figure(q.Requests)))
		case of.kind == aggregate && c.rollup == 0 && q.Seen > 200:
			out = append(out, fmt.Sprintf("A rollup: %s looks at %s rows; with rollup: %s it reads buckets.", q.Query, figure(q.Seen), shownDuration(of.every)))
		}
	}
	return out
}
