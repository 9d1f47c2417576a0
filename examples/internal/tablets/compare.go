package tablets

import (
	"cmp"
	"context"
	"math"
	"math/rand/v2"
	"slices"
)

// Comparison is the order of several designs of keys for the same workload, and whether it depends on what is assumed.
type Comparison struct {
	// Results are those of the loads, in their order, with the usual assumptions.
	Results []*Result
	// Order has the indexes of the loads, the best first. Those that are equal stay in their order.
	Order []int
	// Held is in how many of the draws no load was better than one that Order has before it and that is better there.
	Held int
}

// Better orders results by the share that is served, in whole percents (or below one percent in steps of a factor 1.8),
// then by the nodes that are needed, where "no number helps" is last, and then by what is asked of the hottest node, in
// steps of 10%.
func Better(a, b *Result) int {
	served := func(r *Result) float64 {
		if r.ServedShare >= 0.01 {
			return math.Round(r.ServedShare * 100)
		}
		return math.Round(4*math.Log10(max(r.ServedShare, 1e-12))) + 8 // 0 at one percent
	}
	needed := func(r *Result) int {
		if r.Need.Nodes == 0 {
			return math.MaxInt
		}
		return r.Need.Nodes
	}
	asked := func(r *Result) float64 { return math.Round(math.Log(max(r.HottestNode, 1e-3)) / math.Log(1.1)) }
	return cmp.Or(
		-cmp.Compare(served(a), served(b)),
		cmp.Compare(needed(a), needed(b)),
		cmp.Compare(asked(a), asked(b)),
	)
}

// Compare simulates loads, and then simulates them again with assumptions that are drawn from the ranges that Constants
// names, the same for all loads. It takes as long as loads times draws simulations. The same seed gives the same
// answer. The error is that of ctx.
func Compare(ctx context.Context, loads []Load, cluster Cluster, options Options, draws int) (*Comparison, error) {
	run := func(assume assumptions, withHeat bool) ([]*Result, error) {
		out := make([]*Result, len(loads))
		for i := range loads {
			var err error
			if out[i], err = simulate(ctx, &loads[i], cluster, options, assume, withHeat); err != nil {
				return nil, err
			}
		}
		return out, nil
	}
	c := new(Comparison)
	var err error
	if c.Results, err = run(defaults(), true); err != nil {
		return nil, err
	}
	for i := range loads {
		c.Order = append(c.Order, i)
	}
	slices.SortStableFunc(c.Order, func(a, b int) int { return Better(c.Results[a], c.Results[b]) })
	rnd := rand.New(rand.NewPCG(options.Seed, 40))
	for range draws {
		results, err := run(draw(rnd), false)
		if err != nil {
			return nil, err
		}
		held := true
		for i, a := range results {
			for j, b := range results {
				held = held && (Better(a, b) >= 0 || Better(c.Results[i], c.Results[j]) <= 0)
			}
		}
		if held {
			c.Held++
		}
	}
	return c, nil
}
