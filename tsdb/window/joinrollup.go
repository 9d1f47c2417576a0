package window

import (
	"iter"

	"github.com/tidemark-go/tidemark/internal/inside"
)

type (
	aggregatorGate[T any] = inside.Gate[aggregatorCore[T]]
	aggregatorCore[T any] struct{ inside.Core[*Aggregator[T]] }
)

var _ inside.Face[aggregatorCore[int]] = Aggregator[int]{}.aggregatorGate

// Aggregation returns what the aggregator computes: the names and the rules are one for each measure, without Decimals.
func (c aggregatorCore[T]) Aggregation() (grid Grid, opts Options, names []string, rules []inside.JoinRule) {
	a := c.Value()
	for _, r := range a.rules {
		rules = append(rules, inside.JoinRule{Kind: uint8(r.Kind), Aggregates: uint16(r.Aggregates), Linear: r.Linear, Hold: r.Hold, MaxGap: r.MaxGap, MaxDip: r.MaxDip})
	}
	return a.grid, a.opts, a.names, rules
}

// Join is Fill for buckets that are not yet joined: each knows only its own numbers. It needs no aggregator: nil is
// enough. ends returns the nearest numbers before or after the frame's interval, one for each rule.
func (aggregatorCore[T]) Join(
	buckets iter.Seq2[Bucket, error], f Frame, opts Options, given []inside.JoinRule, ends func(before bool) ([]inside.JoinNumber, error),
) iter.Seq2[Bucket, error] {
	rules := make([]rule, len(given))
	for i, g := range given {
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
				p := reading{t: n.Time, exact: true, units: NewDecimal(n.Units, given[i].Decimals)}
				p.x = p.units.Float64()
				out[i] = neighbour(p, f.Measures[i], &rules[i], given[i].Decimals)
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

// settle sets what follows from the numbers of a bucket alone.
func settle(values []Summary) {
	for i := range values {
		if s := &values[i]; s.Count > 0 {
			s.settle()
		}
	}
}
