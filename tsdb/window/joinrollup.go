package window

import (
	"iter"

	"github.com/tidemark-go/tidemark/internal/inside"
)

func init() {
	inside.JoinBuckets = func(buckets, frame, opts any, rules []inside.JoinRule, ends func(bool) ([]inside.JoinNumber, error)) any {
		return joinBuckets(buckets.(iter.Seq2[Bucket, error]), frame.(Frame), opts.(Options), rules, ends)
	}
	inside.OfAggregator = func(aggregator any) inside.Aggregation {
		return aggregator.(interface{ aggregation() inside.Aggregation }).aggregation()
	}
}

// aggregation implements inside.OfAggregator.
func (a *Aggregator[T]) aggregation() inside.Aggregation {
	out := inside.Aggregation{Grid: a.grid, Names: a.names, Options: a.opts}
	for _, r := range a.rules {
		out.Rules = append(out.Rules, inside.JoinRule{Kind: uint8(r.Kind), Aggregates: uint16(r.Aggregates), Linear: r.Linear, Hold: r.Hold, MaxGap: r.MaxGap, MaxDip: r.MaxDip})
	}
	return out
}

// joinBuckets joins the buckets of a rollup, and fills their gaps.
func joinBuckets(buckets iter.Seq2[Bucket, error], f Frame, opts Options, given []inside.JoinRule, ends func(bool) ([]inside.JoinNumber, error)) iter.Seq2[Bucket, error] {
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
