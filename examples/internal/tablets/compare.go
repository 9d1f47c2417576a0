package tablets

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/tidemark-go/tidemark/internal/invalid"
)

// Candidate is one of several designs of keys for the same workload.
type Candidate struct {
	Name string
	Load Load
}

// CompareOptions configure Compare.
type CompareOptions struct {
	// Options are those of each simulation. Its Assume is used for the first one, and its Seed for the draws, too.
	Options
	// Draws is how often the assumptions are drawn, up to 1,000. Zero is 40. Draws that are negative are none.
	Draws int
	// Rank orders two results, the better one first. Nil is Better.
	Rank func(a, b *Result) int
}

const (
	maxCandidates = 100
	maxDraws      = 1000
)

// Comparison is the order of candidates, and whether it depends on what is assumed.
type Comparison struct {
	// Results are those of the candidates, in their order, with the assumptions of the options.
	Results []*Result
	// Order has the indexes of the candidates, the best first. Those that are equal stay in their order.
	Order []int
	// Draws is how often the assumptions were drawn, and Held in how many of them no candidate was better than one that
	// Order has before it and that is better there.
	Draws, Held int
	// Before says, for each pair of candidates, in how many draws the first was better than the second.
	Before [][]int
	// Broken are the assumptions of the first draws in which the order did not hold, at most 10.
	Broken []Assumptions
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
	asked := func(r *Result) float64 { return math.Round(math.Log(max(r.HottestNode.Asked, 1e-3)) / math.Log(1.1)) }
	return cmp.Or(
		-cmp.Compare(served(a), served(b)),
		cmp.Compare(needed(a), needed(b)),
		cmp.Compare(asked(a), asked(b)),
	)
}

// Compare simulates candidates with the assumptions of the options and then with others, which are drawn from the
// ranges that Constants names, the same for all candidates. It takes as long as candidates times draws simulations. The
// same seed gives the same answer. Errors are those of Simulate, with the name of the candidate.
func Compare(ctx context.Context, candidates []Candidate, cluster Cluster, options CompareOptions) (*Comparison, error) {
	if err := invalid.Range(ErrInvalid, "candidates", len(candidates), 1, maxCandidates, "1 to 100"); err != nil {
		return nil, err
	}
	if err := invalid.Range(ErrInvalid, "Draws", options.Draws, math.MinInt, maxDraws, "0 for 40, or up to 1000"); err != nil {
		return nil, err
	}
	if options.Draws == 0 {
		options.Draws = 40
	}
	if options.Rank == nil {
		options.Rank = Better
	}
	c := &Comparison{Draws: max(options.Draws, 0)}
	run := func(o Options) ([]*Result, error) {
		out := make([]*Result, len(candidates))
		for i := range candidates {
			var err error
			if out[i], err = Simulate(ctx, candidates[i].Load, cluster, o); err != nil {
				return nil, fmt.Errorf("candidate %s: %w", invalid.Quote(candidates[i].Name), err)
			}
		}
		return out, nil
	}
	var err error
	if c.Results, err = run(options.Options); err != nil {
		return nil, err
	}
	c.Before = make([][]int, len(candidates))
	for i := range candidates {
		c.Order = append(c.Order, i)
		c.Before[i] = make([]int, len(candidates))
	}
	slices.SortStableFunc(c.Order, func(a, b int) int { return options.Rank(c.Results[a], c.Results[b]) })
	rnd := rand.New(rand.NewPCG(options.Seed, 40))
	for range c.Draws {
		o := options.Options
		o.Assume = draw(rnd)
		o.Lines, o.Columns = 1, 1 // they are not looked at
		results, err := run(o)
		if err != nil {
			return nil, err
		}
		held := true
		for i, a := range results {
			for j, b := range results {
				if options.Rank(a, b) < 0 {
					c.Before[i][j]++
					held = held && options.Rank(c.Results[i], c.Results[j]) <= 0
				}
			}
		}
		switch {
		case held:
			c.Held++
		case len(c.Broken) < 10:
			c.Broken = append(c.Broken, o.Assume)
		}
	}
	return c, nil
}
