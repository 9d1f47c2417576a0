package rollup

import (
	"encoding/binary"
	"fmt"
	"regexp"
	"slices"
	"strconv"

	"cloud.google.com/go/bigtable"
)

// The endings of the families of a class, and the columns in them.
const (
	endSum, endMin, endMax, endControl = ".s", ".n", ".x", ".c"

	columnPoints     = "n"
	columnBad        = "b"
	columnGeneration = "g"
	prefixCount      = "c."
	prefixSum        = "s."
)

// place is a column of aggregates.
type place struct {
	family, column string
	of             func(*bucket) *int64 // the number of a bucket that stands there
	stands         func(*bucket) bool   // whether a bucket has one
	implies        int                  // the measure whose count is that of the points where no other is stored; else -1
}

// implied is a count that is that of the bucket's points, until that one is known.
const implied = -1

// layout is where the numbers of a rollup's buckets stand.
type layout struct {
	places  []place
	index   map[string]int // of places, by family:column
	control string         // the family of what is not an aggregate
	cells   bigtable.Filter
}

// newLayout returns the places of measures. Most points have a number for each measure, and cells are what reading costs: where
// rows are replaced as a whole, a count that is that of the points is left out.
func newLayout[T any](class string, measures []Measure[T], replaced bool) layout {
	points := func(b *bucket) *int64 { return &b.points }
	bad := func(b *bucket) *int64 { return &b.bad }
	l := layout{control: class + endControl, places: []place{
		{class + endSum, columnPoints, points, func(b *bucket) bool { return b.points != 0 }, -1},
		{class + endSum, columnBad, bad, func(b *bucket) bool { return b.bad != 0 }, -1},
	}}
	for i := range measures {
		name, a := measures[i].Name, measures[i].Aggregates
		stands, implies := func(b *bucket) bool { return b.values[i].count != 0 }, -1
		counted := stands
		if replaced && a&(Sum|Min|Max) != 0 {
			counted, implies = func(b *bucket) bool { return stands(b) && b.values[i].count != b.points }, i
		}
		l.places = append(l.places, place{class + endSum, prefixCount + name, func(b *bucket) *int64 { return &b.values[i].count }, counted, -1})
		put := func(kept bool, family, column string, of func(*bucket) *int64) {
			if kept {
				l.places = append(l.places, place{class + family, column, of, stands, implies})
			}
		}
		put(a&Sum != 0, endSum, prefixSum+name, func(b *bucket) *int64 { return &b.values[i].sum })
		put(a&Min != 0, endMin, name, func(b *bucket) *int64 { return &b.values[i].min })
		put(a&Max != 0, endMax, name, func(b *bucket) *int64 { return &b.values[i].max })
	}
	l.index = make(map[string]int, len(l.places))
	for i, p := range l.places {
		l.index[p.family+":"+p.column] = i
	}
	l.cells = bigtable.FamilyFilter(regexp.QuoteMeta(class) + `\.[snx]`)
	return l
}

// stored returns the buckets in the cells of a row, the oldest first.
func (l *layout) stored(row bigtable.Row, measures int) ([]bucket, error) {
	out := l.starts(row, measures)
	for family, items := range row {
		if family == l.control {
			continue
		}
		place, column, at := -1, "", 0
		for _, item := range items {
			if item.Column != column {
				column, at = item.Column, len(out)-1
				i, ok := l.index[column]
				if place = i; !ok {
					place = -1 // of a measure that the rollup had, or of a newer program
				}
			}
			if place < 0 {
				continue
			}
			if len(item.Value) != 8 {
				return nil, fmt.Errorf("rollup: row %q holds %d bytes in the aggregate %s, want 8", row.Key(), len(item.Value), item.Column)
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
			*l.places[place].of(b) = int64(binary.BigEndian.Uint64(item.Value))
		}
	}
	for i := range out {
		for m := range out[i].values {
			if v := &out[i].values[m]; v.count == implied {
				v.count = out[i].points
			}
		}
	}
	return out, nil
}

// starts returns the buckets that the cells of a row belong to, without their numbers, the oldest first.
func (l *layout) starts(row bigtable.Row, measures int) []bucket {
	most := 0
	for family, items := range row {
		if family != l.control {
			most += len(items)
		}
	}
	at := make([]int64, 0, most)
	for family, items := range row {
		if family == l.control {
			continue
		}
		for i := range items {
			at = append(at, int64(items[i].Timestamp)/1000)
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

// replacement gathers what puts other numbers into the place of a row's buckets.
type replacement struct {
	*bigtable.Mutation
	count int
}

// put makes the cells of a bucket those of b, which may be empty; old is what stands there, nil for nothing.
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
}

// generation returns the generation that a row says it has, 0 for none.
func (l *layout) generation(row bigtable.Row) (uint64, error) {
	for _, item := range row[l.control] {
		if item.Column != l.control+":"+columnGeneration {
			continue
		}
		g, err := strconv.ParseUint(string(item.Value), 10, 64)
		if err != nil || g == 0 {
			return 0, fmt.Errorf("rollup: row %q has the generation %q, which is no number above 0", row.Key(), item.Value)
		}
		return g, nil
	}
	return 0, nil
}

// isGeneration passes something in a row of that generation; of any, for 0.
func (l *layout) isGeneration(g uint64) bigtable.Filter {
	filters := []bigtable.Filter{
		bigtable.FamilyFilter(regexp.QuoteMeta(l.control)),
		bigtable.ColumnFilter(columnGeneration),
		bigtable.LatestNFilter(1),
	}
	if g > 0 {
		filters = append(filters, bigtable.ValueFilter(strconv.FormatUint(g, 10)))
	}
	return bigtable.ChainFilters(filters...)
}
