package tablets

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// Need says how many nodes the hottest period needs, if all tablets are where they do best.
type Need struct {
	// Nodes is the least number with which no node exceeds the target of its CPU. It is 0 if no number does; then Why
	// says why.
	Nodes int
	// CPU is how many nodes the load would keep fully busy then, and FrontCPU how much of a node the hottest front
	// needs.
	CPU, FrontCPU float64
	// Why is empty if Nodes is not 0.
	Why string
}

// smallFront is the share of a node's target below which fronts are so small that they fill what larger ones leave.
const smallFront = 0.05

// need computes the Need at the step with the most load and at the step with the hottest front.
func (s *simulation) need() Need {
	all := s.tablet(0, len(s.load.Fronts))
	greatest := make([]float64, len(all.cost)) // by curve: the cost of the hottest front
	for i, cost := range s.writing {
		c := s.load.Fronts[i].Curve
		greatest[c] = max(greatest[c], cost)
	}
	peak, hottest := s.warmSteps, s.warmSteps
	most, mostOfOne := 0.0, 0.0
	for n := s.warmSteps; n < len(s.factors); n++ {
		if v := dot(all.cost, s.factors[n]); v > most*(1+slack) {
			peak, most = n, v
		}
		for c, f := range s.factors[n] {
			if v := greatest[c] * f; v > mostOfOne {
				hottest, mostOfOne = n, v
			}
		}
	}
	out := s.needAt(peak)
	if hottest != peak && out.Nodes > 0 {
		if o := s.needAt(hottest); o.Nodes == 0 || o.Nodes > out.Nodes {
			out = o
		}
	}
	return out
}

// needAt computes what the load of a step needs.
func (s *simulation) needAt(n int) Need {
	out := Need{CPU: s.old}
	hottest := 0
	var large []float64
	for i := range s.writing {
		cost := s.writing[i]*s.factors[n][s.load.Fronts[i].Curve] + s.reading[i]
		out.CPU += cost
		if cost > out.FrontCPU {
			hottest, out.FrontCPU = i, cost
		}
		if cost > targetCPU*smallFront {
			large = append(large, cost)
		}
	}
	if out.FrontCPU > targetCPU*(1+slack) {
		out.Why = why(&s.load.Fronts[hottest], out.FrontCPU)
		return out
	}
	slices.SortFunc(large, func(a, b float64) int { return cmp.Compare(b, a) })
	for n := max(int(math.Ceil(out.CPU/targetCPU-slack)), 1); n <= maxNodes; n++ {
		if fits(large, n) {
			out.Nodes = n
			return out
		}
	}
	out.Why = fmt.Sprintf("the load needs more than %d nodes, the most that are tried", maxNodes)
	return out
}

// why says why no number of nodes helps.
func why(f *Front, cpu float64) string {
	what := "one front"
	if f.Moves {
		what = "one front, which moves forward as its keys begin with the time,"
	}
	text := fmt.Sprintf("%s needs %.0f%% of a node", what, cpu*100)
	if cpu > 1 {
		return text + ", and no split divides it"
	}
	return fmt.Sprintf("%s, above the target of %.0f%%, and no split divides it", text, targetCPU*100)
}

// fits reports whether loads, the largest first, fit on n nodes: each goes to the node with the least load.
func fits(loads []float64, n int) bool {
	p := newPlaces(n)
	for _, load := range loads {
		if p.load[0]+load > targetCPU*(1+slack) {
			return false
		}
		p.put(load)
	}
	return true
}
