package window

import (
	"iter"
	"math"
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

// Aggregation returns what the aggregator computes. The measures have the aggregates that their default stands for.
func (c aggregatorCore[T]) Aggregation() (Grid, Options, []Measure[T]) {
	a := c.Value()
	return a.grid, a.opts, a.measures
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
// before or after the interval, one for each measure, if it is needed.
func (aggregatorCore[T]) Join(
	buckets iter.Seq2[Bucket, error], grid Grid, in tsdb.Interval, order tsdb.Order, opts Options, given []Measure[T],
	ends func(before bool, needed []bool) ([]inside.JoinNumber, error),
) iter.Seq2[Bucket, error] {
	f := frame{Grid: grid, Interval: in, Order: order}
	rules := make([]rule, len(given))
	for i := range given {
		f.Measures = append(f.Measures, given[i].Name)
		rules[i] = given[i].rule()
		if err := rules[i].fits(i, opts); err != nil {
			return fail(err)
		}
	}
	anchors := func(before bool, needed []bool) ([]anchor, error) {
		numbers, err := ends(before, needed)
		out := make([]anchor, len(numbers))
		for i, n := range numbers {
			if n.Found {
				out[i] = neighbour(given[i].exact(n.Time, n.Units), given[i].Name, &rules[i], given[i].Decimals)
			}
			out[i].changed = n.Changed
		}
		return out, err
	}
	return fill(buckets, f, opts, &joining{rules, anchors})
}

// Stored returns the summary of a stored bucket by its own numbers, without StdDev. The measure has the aggregates that
// are stored. It needs no aggregator.
func (aggregatorCore[T]) Stored(m Measure[T], n inside.StoredNumbers) Summary {
	a := accumulator{count: n.Count, resets: n.Resets, sketch: n.Sketch, covered: newSpan(n.Covered), area: compensated{sum: n.Integral}}
	a.exactSum, a.exactInc = newDecimal(n.Sum, m.Decimals), newDecimal(n.Increase, m.Decimals)
	a.min.x, a.max.x = math.Inf(-1), math.Inf(1) // what is not known does not bound the mean
	if m.Aggregates.any(Min) {
		a.min = m.exact(time.Time{}, n.Min)
	}
	if m.Aggregates.any(Max) {
		a.max = m.exact(time.Time{}, n.Max)
	}
	if m.Aggregates.any(Ends) {
		a.head, a.tail = m.exact(n.FirstTime, n.First), m.exact(n.LastTime, n.Last)
	}
	r := m.rule()
	return a.summary(m.Name, &r, m.Decimals, true)
}
