package rollup

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"regexp"
	"slices"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/store/catalog"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

// Columns of the class's families, and prefixes of columns. Others are those of numbers.
const (
	columnPoints     = "n"
	columnBad        = "b"
	columnGeneration = "g"
	prefixCount      = "c."
	// The columns of sketches are in the control family.
	prefixSketch = "q:"
)

// place is a column of aggregates.
type place struct {
	family, column string
	of             func(*bucket) *int64 // the number that the column stores
	stands         func(*bucket) bool   // whether the bucket stores it
	measure        int                  // -1 for none
	gives          window.Aggregates    // what a read knows of the measure from the cell
	implies        bool                 // the measure's count equals that of the points if none is stored
}

// implied stands for a count that equals the bucket's points, until those are read.
const implied = -1

// layout maps the numbers of a rollup's buckets to columns.
type layout struct {
	places  []place
	index   map[string]int // indexes of places, by family:column
	control string         // the family of cells that are not aggregates
	cells   bigtable.Filter
	follow  []func(*sums) // one per measure
	// Sketches have a column per bucket, because their family keeps one version of a column.
	sketches []sketchPlace
	// growth is how many aggregates were added to the stored rollup. Only programs that know them all may replace its
	// buckets.
	growth int
}

// newLayout returns the layout of measures. If replaced is set, workers replace whole rows. A count that equals the
// count of points is then not stored: that holds for most measures, and saves cells, which dominate the cost of
// reading.
func newLayout[T any](class string, measures []Measure[T], replaced bool) layout {
	l := layout{control: class + catalog.ControlEnding, places: []place{
		{class + catalog.SumEnding, columnPoints, func(b *bucket) *int64 { return &b.points }, func(b *bucket) bool { return b.points != 0 }, -1, 0, false},
		{class + catalog.SumEnding, columnBad, func(b *bucket) *int64 { return &b.bad }, func(b *bucket) bool { return b.bad != 0 }, -1, 0, false},
	}}
	for i := range measures {
		m := &measures[i]
		implied := replaced && m.Aggregates&^window.Count != 0
		count := func(b *bucket) *int64 { return &b.values[i].count }
		l.places = append(l.places, place{class + catalog.SumEnding, prefixCount + m.Name, count, func(b *bucket) bool {
			s := &b.values[i]
			switch { // a count of 0 is stored: a bucket without any cell of the measure is known to be older than it
			case m.Added && s.missing&window.Count != 0:
				return false
			case m.Added && s.count == 0:
				return !b.empty()
			}
			return s.count != 0 && !(implied && s.count == b.points)
		}, i, window.Count, false})
		for _, n := range numbers {
			if !m.has(n.keeps) || n.prefix == prefixCovered && m.MaxGap == 0 {
				continue
			}
			of := func(b *bucket) *int64 { return n.of(&b.values[i]) }
			l.places = append(l.places, place{class + n.family, n.prefix + m.Name, of, func(b *bucket) bool {
				s := &b.values[i]
				return s.count != 0 && s.missing&n.keeps == 0 && (n.stands == nil || n.stands(s))
			}, i, n.keeps, implied})
		}
		if m.has(window.Quantiles) {
			l.sketches = append(l.sketches, sketchPlace{i, l.control + ":" + prefixSketch + m.Name + ":"})
		}
		if m.Added {
			l.growth += bits.OnesCount16(uint16(m.Aggregates))
		}
		l.follow = append(l.follow, follow(m))
	}
	l.index = make(map[string]int, len(l.places))
	for i, p := range l.places {
		l.index[p.family+":"+p.column] = i
	}
	l.cells = bigtable.FamilyFilter(regexp.QuoteMeta(class) + `\.[snx]`)
	if len(l.sketches) > 0 {
		l.cells = bigtable.InterleaveFilters(l.cells, bigtable.ChainFilters(bigtable.FamilyFilter(regexp.QuoteMeta(l.control)), bigtable.ColumnFilter(prefixSketch+".*")))
	}
	return l
}

// stored returns the buckets in the cells of a row, oldest first.
func (l *layout) stored(row *bt.Row) ([]bucket, error) {
	out := l.starts(row, len(l.follow))
	for family, items := range row.Families() {
		if family == l.control {
			continue
		}
		place, column, at := -1, "", 0
		for _, item := range items {
			if item.Column != column {
				column, at = item.Column, len(out)-1
				i, ok := l.index[column]
				if place = i; !ok {
					place = -1 // a former measure, or one of a newer program
				}
			}
			if place < 0 {
				continue
			}
			if len(item.Value) != 8 {
				return nil, fmt.Errorf("rollup: row %q has %d bytes in aggregate %s, want 8", row.Key(), len(item.Value), item.Column)
			}
			for start := int64(item.Timestamp) / 1000; out[at].start != start; { // cells of a column come newest first
				if at--; at < 0 {
					at = len(out) - 1
				}
			}
			b := &out[at]
			p := &l.places[place]
			if p.measure >= 0 {
				v := &b.values[p.measure]
				if v.seen |= p.gives; p.implies && v.count == 0 {
					v.count = implied
				}
			}
			*p.of(b) = int64(binary.BigEndian.Uint64(item.Value))
		}
	}
	l.takeSketches(row, out)
	for i := range out {
		for m := range out[i].values {
			v := &out[i].values[m]
			if v.count == implied {
				v.count = out[i].points
			}
			l.follow[m](v)
		}
	}
	return out, nil
}

// starts returns the starts of the buckets in a row, without their numbers, oldest first.
func (l *layout) starts(row *bt.Row, measures int) []bucket {
	var at []int64
	first := -1 // cells of the first column, which most columns have the times of
	for family, items := range row.Families() {
		if family == l.control {
			continue
		}
		column, next := "", 0
		for i := range items {
			start := int64(items[i].Timestamp) / 1000
			if items[i].Column != column {
				if column != "" && first < 0 {
					first = len(at)
				}
				column, next = items[i].Column, 0
			}
			for next < first && at[next] > start { // cells of a column come newest first
				next++
			}
			if next >= first || at[next] != start {
				at = append(at, start)
			}
		}
		if first < 0 {
			first = len(at)
		}
	}
	slices.Sort(at)
	at = slices.Compact(at)
	out, values := make([]bucket, len(at)), make([]sums, len(at)*measures)
	for i, start := range at {
		out[i] = bucket{start: start, values: values[i*measures : (i+1)*measures : (i+1)*measures]}
	}
	return out
}

// replacement collects the mutations that replace a row's buckets.
type replacement struct {
	*bigtable.Mutation
	count int
}

// put replaces the cells of bucket old with those of b. b may be empty; a nil old means that no bucket is stored.
func (l *layout) put(m *replacement, old, b *bucket) {
	at := bigtable.Timestamp(b.start * 1000)
	for _, p := range l.places {
		had, has := old != nil && p.stands(old), p.stands(b)
		if had && has && *p.of(old) == *p.of(b) {
			continue
		}
		if had {
			m.DeleteTimestampRange(p.family, p.column, at, at+1000)
			m.count++
		}
		if has {
			m.AddIntToCell(p.family, p.column, at, *p.of(b))
			m.count++
		}
	}
	l.putSketches(m, old, b)
}
