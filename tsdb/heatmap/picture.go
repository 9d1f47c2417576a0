package heatmap

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/tidemark-go/tidemark/internal/invalid"
)

// View says what a line of a picture is.
type View uint8

// ByKey: a range of row keys. All lines have equally many entities, of those that were sampled. ByDataset: a dataset of a
// tenant. ByTenant: a tenant.
const (
	ByKey View = iota
	ByDataset
	ByTenant
)

var viewNames = []string{"key", "dataset", "tenant"}

// String returns "key", "dataset" or "tenant".
func (v View) String() string { return nameOf(viewNames, int(v)) }

// MarshalText returns the view's name. It fails with ErrInvalid for a value that is none of the views.
func (v View) MarshalText() ([]byte, error) { return textOf("view", viewNames, int(v)) }

// UnmarshalText sets v to the view of a name. It fails with ErrInvalid.
func (v *View) UnmarshalText(text []byte) error {
	return parseName("view", viewNames, text, (*uint8)(v))
}

// Metric says what a cell of a picture shows.
type Metric uint8

// Rows: rows that were read or written. Reads, Writes, Failures: rows of one kind. Bytes: bytes that were read or written.
// Latency: the mean duration of requests, over the rows. Except for Latency they are rates: per second.
const (
	Rows Metric = iota
	Reads
	Writes
	Bytes
	Latency
	Failures
)

var metricNames = []string{"rows", "reads", "writes", "bytes", "latency", "failures"}

// String returns the name in small letters: "rows", "reads", and so on.
func (m Metric) String() string { return nameOf(metricNames, int(m)) }

// MarshalText returns the metric's name. It fails with ErrInvalid for a value that is none of the metrics.
func (m Metric) MarshalText() ([]byte, error) { return textOf("metric", metricNames, int(m)) }

// UnmarshalText sets m to the metric of a name. It fails with ErrInvalid.
func (m *Metric) UnmarshalText(text []byte) error {
	return parseName("metric", metricNames, text, (*uint8)(m))
}

func nameOf(names []string, i int) string {
	if i >= len(names) {
		return fmt.Sprint(i)
	}
	return names[i]
}

func textOf(what string, names []string, i int) ([]byte, error) {
	if i >= len(names) {
		return nil, invalid.New(ErrInvalid, what, fmt.Sprint(i), fmt.Sprintf("0 to %d", len(names)-1))
	}
	return []byte(names[i]), nil
}

func parseName(what string, names []string, text []byte, to *uint8) error {
	i := slices.Index(names, string(text))
	if i < 0 {
		return invalid.New(ErrInvalid, what, invalid.Quote(string(text)), fmt.Sprintf("one of %v", names))
	}
	*to = uint8(i)
	return nil
}

// PictureOptions say what a picture shows. The zero value shows rows by key.
type PictureOptions struct {
	By     View
	Metric Metric
	// Dark selects the dark theme of WritePNG. WriteHTML uses the theme of the reader's system.
	Dark bool
	// Lines is the most lines of key ranges. Zero is 30 in text and 180 in PNG. WriteHTML decides by its window.
	Lines int
	// Tablets are outlined in WriteHTML and WritePNG, where they have recorded keys at a recorded time: at most 1,000. A recording with ranks
	// in place of names cannot show them.
	Tablets []Tablet
}

// The limits of PictureOptions.
const (
	maxLines   = 1000
	maxTablets = 1000
)

func (o PictureOptions) check(w io.Writer, r *Recording) error {
	switch {
	case len(o.Tablets) > maxTablets:
		return invalid.New(ErrInvalid, "Tablets", fmt.Sprintf("%d long", len(o.Tablets)), fmt.Sprintf("at most %d", maxTablets))
	case len(o.Tablets) > 0 && r != nil && r.ranked:
		return invalid.New(ErrInvalid, "Tablets", "set", "none, because the recording has ranks in place of names")
	case w == nil:
		return invalid.New(ErrInvalid, "writer", "nil", "an io.Writer")
	case int(o.By) >= len(viewNames):
		return invalid.New(ErrInvalid, "By", o.By.String(), "ByKey, ByDataset or ByTenant")
	case int(o.Metric) >= len(metricNames):
		return invalid.New(ErrInvalid, "Metric", o.Metric.String(), "Rows, Reads, Writes, Bytes, Latency or Failures")
	}
	return invalid.Range(ErrInvalid, "Lines", o.Lines, 0, maxLines, "0 for the default, or up to 1000")
}

// figures are what happened in a cell, or in all cells of a line. They are estimates; those of a column are exact.
type figures struct{ reads, writes, failures, bytes, micros float64 }

func (f *figures) add(k kind, rows, bytes, micros float64) {
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

func (f *figures) join(o figures) {
	f.reads += o.reads
	f.writes += o.writes
	f.failures += o.failures
	f.bytes += o.bytes
	f.micros += o.micros
}

// value returns a metric of figures that were counted over some seconds: a rate, or for Latency milliseconds.
func (f figures) value(m Metric, seconds float64) float64 {
	if m == Latency {
		if rows := f.reads + f.writes + f.failures; rows > 0 {
			return f.micros / rows / 1000
		}
		return 0
	}
	if seconds <= 0 {
		return 0
	}
	return [...]float64{Rows: f.reads + f.writes, Reads: f.reads, Writes: f.writes, Bytes: f.bytes, Failures: f.failures}[m] / seconds
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
	n           int // entities, datasets or tenants
	entities    int
	hot         place   // what has the most rows
	hotRows     float64 // of it
	rows        float64
}

// label returns the place that has more than half of a line's rows, or else the one where the line begins.
func (l line) label(by View) string {
	at := l.first
	if l.hotRows*2 > l.rows {
		at = l.hot
	}
	name := at.tenantName()
	if by == ByTenant {
		return name
	}
	if at.tenant != "" {
		name += " " + at.dataset
	}
	if by == ByDataset {
		return name
	}
	return at.name()
}

// of returns by what a view tells places apart.
func (v View) of(p place) string {
	switch v {
	case ByTenant:
		return p.tenant
	case ByDataset:
		return p.group
	}
	return p.entity
}

// grid divides what was recorded into at most that many lines. Each line has the same number of entities, datasets or
// tenants, except the last, which may have fewer. So the lines follow from what was recorded, and equal loads get equal colours.
func (r *Recording) grid(by View, most int) *grid {
	g := new(grid)
	type item struct {
		place
		name     string
		line     int
		rows     float64
		entities map[string]bool
	}
	items := map[string]*item{}
	byKey := map[string]*item{}
	for _, col := range r.list() {
		for k := range col.cells {
			c := &col.cells[k]
			for i := range c.samples {
				key := string(c.at(i).key)
				if byKey[key] != nil {
					continue
				}
				p := placeOf(key)
				name := by.of(p)
				it := items[name]
				if it == nil {
					it = &item{place: p, name: name, entities: map[string]bool{}}
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
		if l.n == 0 {
			l.first = it.place
		}
		l.last = it.place
		l.n++
		l.entities += len(it.entities)
	}
	for _, col := range r.list() {
		cells, exact := make([]figures, n), figures{}
		for k := range col.cells {
			c := &col.cells[k]
			weight := c.weight()
			for i := range c.samples {
				s := c.at(i)
				it := byKey[string(s.key)]
				it.rows += weight
				cells[it.line].add(kind(k), weight, weight*float64(s.bytes), weight*float64(s.micros))
			}
			exact.add(kind(k), float64(c.rows), float64(c.bytes), float64(c.micros))
		}
		g.cells = append(g.cells, cells)
		g.columns = append(g.columns, exact)
		g.seconds = append(g.seconds, r.covered(col).Seconds())
	}
	for _, it := range ordered {
		l := &g.lines[it.line]
		if l.rows += it.rows; it.rows > l.hotRows {
			l.hot, l.hotRows = it.place, it.rows
		}
	}
	return g
}

// total returns what happened in a line over all columns.
func (g *grid) total(line int) (f figures, seconds float64) {
	for n, cells := range g.cells {
		f.join(cells[line])
		seconds += g.seconds[n]
	}
	return f, seconds
}

// Three quarters of the colours are for values up to a percentile of the cells that are not empty, so that one hot entity does not make
// the others invisible. The rest is for what exceeds it.
const (
	clip   = 0.95
	common = 0.75
)

// scale is what the colours of a picture stand for: the percentile and the greatest value.
type scale struct{ usual, most float64 }

func scaleOf(values []float64) scale {
	var list []float64
	for _, v := range values {
		if v > 0 {
			list = append(list, v)
		}
	}
	if len(list) == 0 {
		return scale{1, 1}
	}
	slices.Sort(list)
	return scale{list[int(clip*float64(len(list)-1))], list[len(list)-1]}
}

// strength returns the place of a value among the colours, from 0 to 1.
func (s scale) strength(v float64) float64 {
	switch {
	case v <= 0:
		return 0
	case v <= s.usual:
		return common * math.Sqrt(v/s.usual)
	}
	return min(common+(1-common)*math.Log(v/s.usual)/math.Log(s.most/s.usual), 1)
}

// values returns a metric of all cells, column by column.
func (g *grid) values(m Metric) []float64 {
	var out []float64
	for n, cells := range g.cells {
		for _, f := range cells {
			out = append(out, f.value(m, g.seconds[n]))
		}
	}
	return out
}
