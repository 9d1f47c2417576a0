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

// Suffixes of the class's column families, and the columns in them.
const (
	columnPoints     = "n"
	columnBad        = "b"
	columnGeneration = "g"
	prefixCount      = "c."
	prefixSum        = "s."
	// The following exist only for measures that keep more than window.Basic.
	prefixFirst       = "f."
	prefixLast        = "l."
	prefixFirstAt     = "F."
	prefixLastAt      = "L."
	prefixIncrease    = "i."
	prefixResets      = "r."
	prefixSquares     = "q."
	prefixSquaresHigh = "Q."
	prefixArea        = "a."
	prefixCovered     = "v."
	// The columns of sketches are in the control family.
	prefixSketch = "q:"
)

// place is a column of aggregates.
type place struct {
	family, column string
	of             func(*bucket) *int64 // the number that the column stores
	stands         func(*bucket) bool   // whether the bucket stores it
	implies        int                  // the measure whose count equals that of the points if none is stored; else -1
	measure        int                  // -1 for none
	gives          window.Aggregates    // what a read knows of the measure from the cell
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
	points := func(b *bucket) *int64 { return &b.points }
	bad := func(b *bucket) *int64 { return &b.bad }
	l := layout{control: class + catalog.ControlEnding, places: []place{
		{class + catalog.SumEnding, columnPoints, points, func(b *bucket) bool { return b.points != 0 }, -1, -1, 0},
		{class + catalog.SumEnding, columnBad, bad, func(b *bucket) bool { return b.bad != 0 }, -1, -1, 0},
	}}
	for i := range measures {
		name, a := measures[i].Name, measures[i].Aggregates
		stands, implies := func(b *bucket) bool { return b.values[i].count != 0 }, -1
		counted := stands
		if replaced && a&^window.Count != 0 {
			counted, implies = func(b *bucket) bool { return stands(b) && b.values[i].count != b.points }, i
		}
		if measures[i].Added {
			// A count of 0 is stored, so that a bucket without any cell of the measure is known to be older than the
			// measure.
			some := counted
			counted = func(b *bucket) bool {
				s := &b.values[i]
				return s.missing&window.Count == 0 && (some(b) || s.count == 0 && !b.empty())
			}
			l.growth += bits.OnesCount16(uint16(a))
		}
		l.places = append(l.places, place{class + catalog.SumEnding, prefixCount + name, func(b *bucket) *int64 { return &b.values[i].count }, counted, -1, i, window.Count})
		put := func(kept window.Aggregates, family, column string, of func(*bucket) *int64) {
			if a&kept != 0 {
				l.places = append(l.places, place{
					class + family, column, of, func(b *bucket) bool { return stands(b) && b.values[i].missing&kept == 0 }, implies, i, kept,
				})
			}
		}
		// A cell that follows from others is not stored.
		extra := func(kept window.Aggregates, prefix string, of func(*sums) *int64, needed func(*sums) bool) {
			if a&kept != 0 {
				l.places = append(l.places, place{
					class + catalog.SumEnding, prefix + name,
					func(b *bucket) *int64 { return of(&b.values[i]) },
					func(b *bucket) bool { return needed(&b.values[i]) && b.values[i].missing&kept == 0 },
					implies, i, kept,
				})
			}
		}
		some := func(s *sums) bool { return s.count > 0 }
		several := func(s *sums) bool { return s.count > 1 }
		reset := func(s *sums) bool { return s.resets != 0 }
		extra(window.Ends, prefixFirst, func(s *sums) *int64 { return &s.first }, some)
		extra(window.Ends, prefixFirstAt, func(s *sums) *int64 { return &s.firstAt }, some)
		extra(window.Ends, prefixLast, func(s *sums) *int64 { return &s.last }, several)
		extra(window.Ends, prefixLastAt, func(s *sums) *int64 { return &s.lastAt }, several)
		extra(window.Increase, prefixIncrease, func(s *sums) *int64 { return &s.increase }, reset)
		extra(window.Increase, prefixResets, func(s *sums) *int64 { return &s.resets }, reset)
		extra(window.StdDev, prefixSquares, func(s *sums) *int64 { return &s.squares }, some)
		extra(window.StdDev, prefixSquaresHigh, func(s *sums) *int64 { return &s.squaresHigh }, func(s *sums) bool { return s.squaresHigh != 0 })
		extra(window.Integral, prefixArea, func(s *sums) *int64 { return &s.area }, several)
		extra(window.Integral, prefixCovered, func(s *sums) *int64 { return &s.covered }, func(s *sums) bool {
			return s.count > 1 && measures[i].MaxGap != 0
		})
		put(window.Sum, catalog.SumEnding, prefixSum+name, func(b *bucket) *int64 { return &b.values[i].sum })
		put(window.Min, catalog.MinEnding, name, func(b *bucket) *int64 { return &b.values[i].min })
		put(window.Max, catalog.MaxEnding, name, func(b *bucket) *int64 { return &b.values[i].max })
		if a&window.Quantiles != 0 {
			l.sketches = append(l.sketches, sketchPlace{i, l.control + ":" + prefixSketch + name + ":"})
		}
	}
	for i := range measures {
		l.follow = append(l.follow, follow(&measures[i]))
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
func (l *layout) stored(row *bt.Row, measures int) ([]bucket, error) {
	out := l.starts(row, measures)
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
			if m := l.places[place].implies; m >= 0 && b.values[m].count == 0 {
				b.values[m].count = implied
			}
			if m := l.places[place].measure; m >= 0 {
				b.values[m].seen |= l.places[place].gives
			}
			*l.places[place].of(b) = int64(binary.BigEndian.Uint64(item.Value))
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

// follow returns the function that sets what is not stored of a measure because it follows from other cells.
func follow[T any](m *Measure[T]) func(*sums) {
	return func(s *sums) {
		if s.count == 1 {
			s.last, s.lastAt = s.first, s.firstAt
		}
		if s.resets == 0 {
			s.increase = s.last - s.first
		}
		if m.MaxGap == 0 {
			s.covered = s.lastAt - s.firstAt
		}
		s.missing = m.missing(s)
	}
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
