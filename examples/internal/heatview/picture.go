package heatview

import (
	"cmp"
	"slices"

	"github.com/tidemark-go/tidemark/internal/heat"
)

// view is what a line of a picture is.
type view uint8

// byKey: a range of row keys. All lines have equally many entities, of those that were sampled.
const (
	byKey view = iota
	byDataset
	byTenant
	views
)

// figures are what happened in a cell, or in all cells of a line. They are estimates; those of a column are exact.
type figures struct{ reads, writes, failures, bytes, micros float64 }

func (f *figures) add(k heat.Kind, rows, bytes, micros float64) {
	switch k {
	case reads:
		f.reads += rows
	case writes:
		f.writes += rows
	case failures:
		f.failures += rows
	}
	if k != failures {
		f.bytes += bytes
	}
	f.micros += micros
}

// grid is a picture without colours: what happened by column and by line.
type grid struct {
	lines   []line
	cells   [][]figures // by column of the recording, then by line
	columns []figures   // exact
	seconds []float64   // by column: how much of it was recorded
}

// line is a range of neighbours: of entities, datasets or tenants.
type line struct {
	first, last place
	entities    int
}

// of returns by what a view tells places apart.
func (v view) of(p place) string {
	switch v {
	case byTenant:
		return p.tenant
	case byDataset:
		return p.group
	}
	return p.entity
}

// grid divides what was recorded into at most that many lines. Each line has the same number of entities, datasets or
// tenants, except the last, which may have fewer. So the lines follow from what was recorded, and equal loads get equal
// colours.
func gridOf(r *heat.Recording, by view, most int) *grid {
	g := new(grid)
	type item struct {
		place
		line     int
		entities map[string]bool
	}
	items := map[string]*item{}
	byKey := map[string]*item{}
	for _, col := range r.List() {
		for k := range col.Cells {
			c := &col.Cells[k]
			for i := range c.Samples {
				key := string(c.At(i).Key)
				if byKey[key] != nil {
					continue
				}
				p := placeOf(key)
				name := by.of(p)
				it := items[name]
				if it == nil {
					it = &item{place: p, entities: map[string]bool{}}
					items[name] = it
				}
				if p.entity < it.entity {
					it.place = p
				}
				it.entities[p.entity] = true
				byKey[key] = it
			}
		}
	}
	ordered := make([]*item, 0, len(items))
	for _, it := range items {
		ordered = append(ordered, it)
	}
	slices.SortFunc(ordered, func(a, b *item) int { return cmp.Compare(a.entity, b.entity) })
	each := max((len(ordered)+most-1)/most, 1)
	n := (len(ordered) + each - 1) / each
	g.lines = make([]line, n)
	for i, it := range ordered {
		it.line = i / each
		l := &g.lines[it.line]
		if l.entities == 0 {
			l.first = it.place
		}
		l.last = it.place
		l.entities += len(it.entities)
	}
	for _, col := range r.List() {
		cells, exact := make([]figures, n), figures{}
		for k := range col.Cells {
			c := &col.Cells[k]
			weight := c.Weight()
			for i := range c.Samples {
				s := c.At(i)
				cells[byKey[string(s.Key)].line].add(heat.Kind(k), weight, weight*float64(s.Bytes), weight*float64(s.Micros))
			}
			exact.add(heat.Kind(k), float64(c.Rows), float64(c.Bytes), float64(c.Micros))
		}
		g.cells = append(g.cells, cells)
		g.columns = append(g.columns, exact)
		g.seconds = append(g.seconds, r.Covered(col).Seconds())
	}
	return g
}
