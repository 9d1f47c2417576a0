package window

import (
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/tidemark-go/tidemark/internal/inside"
	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/tsdb"
)

type (
	aggregatorGate[T any] = inside.Gate[aggregatorCore[T]]
	aggregatorCore[T any] struct{ inside.Core[*Aggregator[T]] }
)

var _ inside.Face[aggregatorCore[int]] = Aggregator[int]{}.aggregatorGate

// Aggregation returns what the aggregator computes: a rule for each measure, without Decimals.
func (c aggregatorCore[T]) Aggregation() (grid Grid, opts Options, rules []inside.JoinRule) {
	a := c.Value()
	for i, r := range a.rules {
		rules = append(rules, inside.JoinRule{Name: a.names[i], Kind: uint8(r.Kind), Aggregates: uint16(r.Aggregates), Linear: r.Linear, Hold: r.Hold, MaxGap: r.MaxGap, MaxDip: r.MaxDip})
	}
	return a.grid, a.opts, rules
}

// Grid returns the grid that the catalogue describes: the text of [Grid.String], and the zone. It needs no aggregator.
func (aggregatorCore[T]) Grid(text, zone string) (Grid, error) {
	every, first, named := strings.Cut(text, " from ")
	grid, err := Parse(every)
	if err != nil {
		return grid, err
	}
	if named {
		grid.first = time.Weekday(slices.IndexFunc([]time.Weekday{0, 1, 2, 3, 4, 5, 6}, func(d time.Weekday) bool { return d.String() == first }))
		if grid.unit != weeks || grid.first < 0 {
			return grid, invalid.New(tsdb.ErrInvalid, "width", invalid.Quote(text), "weeks from a day")
		}
	}
	in, err := time.LoadLocation(zone)
	return grid.In(in), err
}

// Join returns buckets of a grid in an interval with their gaps filled. Each of the given ones knows only its own
// numbers, and is joined with its neighbours. It needs no aggregator: nil is enough. ends returns the nearest numbers
// before or after the interval, one for each rule.
func (aggregatorCore[T]) Join(
	buckets iter.Seq2[Bucket, error], grid Grid, in tsdb.Interval, order tsdb.Order, opts Options, given []inside.JoinRule, ends func(before bool) ([]inside.JoinNumber, error),
) iter.Seq2[Bucket, error] {
	f := frame{Grid: grid, Interval: in, Order: order}
	rules := make([]rule, len(given))
	for i, g := range given {
		f.Measures = append(f.Measures, g.Name)
		rules[i] = rule{Kind(g.Kind), Aggregates(g.Aggregates), g.Linear, g.Hold, g.MaxGap, g.MaxDip}
		if err := rules[i].fits(i, opts); err != nil {
			return fail(err)
		}
	}
	anchors := func(before bool) ([]anchor, error) {
		numbers, err := ends(before)
		out := make([]anchor, len(numbers))
		for i, n := range numbers {
			if n.Found {
				p := reading{t: n.Time, exact: true, units: newDecimal(n.Units, given[i].Decimals)}
				p.x = p.units.Float64()
				out[i] = neighbour(p, given[i].Name, &rules[i], given[i].Decimals)
			}
			out[i].changed = n.Changed
		}
		return out, err
	}
	alone := func(yield func(Bucket, error) bool) {
		for b, err := range buckets {
			settle(b.Values)
			if b.Incomplete != nil {
				settle(b.Incomplete.Values)
			}
			if !yield(b, err) {
				return
			}
		}
	}
	return fill(alone, f, opts, &joining{rules, anchors})
}

// SetStored sets what a summary of a stored bucket has beside its floats. It needs no aggregator.
func (aggregatorCore[T]) SetStored(s *Summary, n inside.StoredNumbers) {
	s.sketch = n.Sketch
	s.Covered = newSpan(n.Covered)
	if s.Count == 0 {
		return
	}
	e := &exactNumbers{}
	of := func(a Aggregates, units int64) (d decimal) {
		if s.Aggregates.any(a) {
			d = newDecimal(units, n.Decimals)
		}
		return d
	}
	e.Sum, e.Min, e.Max = of(Sum, n.Sum), of(Min, n.Min), of(Max, n.Max)
	e.First, e.Last, e.Increase = of(Ends, n.First), of(Ends, n.Last), of(Increase, n.Increase)
	s.exact = e
}

// settle sets what follows from the numbers of a bucket alone.
func settle(values []Summary) {
	for i := range values {
		if s := &values[i]; s.Count > 0 {
			s.settle()
		}
	}
}
