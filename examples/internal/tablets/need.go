package tablets

import (
	"container/heap"
	"fmt"
	"math"
	"slices"
	"time"
)

// Need says how many nodes the hottest period needs, if all tablets are where they do best.
type Need struct {
	// Nodes is the least number with which no node exceeds the target of its CPU, and of its storage. It is 0 if no
	// number does; then Why says why.
	Nodes int
	// ForLoad and ForStorage are what each of them needs. ForLoad is 0 if no number helps.
	ForLoad, ForStorage int
	// At is when the hottest period is.
	At time.Duration
	// CPU is how many nodes the load would keep fully busy then.
	CPU float64
	// First is the hottest front then, and Last the front behind it: of a range that jumps too often to be split, the
	// whole range. FrontCPU is how much of a node it needs.
	First, Last int
	FrontCPU    float64
	// Why is empty if Nodes is not 0.
	Why string
}

// part is what no split divides.
type part struct {
	first, last int
	cpu         float64
}

// smallPart is the share of a server's target below which parts are so small that they fill what larger ones leave.
const smallPart = 0.05

// need computes the Need at the step with the most load and at the step with the hottest part.
func (s *simulation) need(stored float64) Need {
	size := float64(s.cluster.size())
	peak := s.hottestStep()
	out := s.needAt(peak)
	if at, ok := s.hottestPart(); ok && at != peak {
		if o := s.needAt(at); out.ForLoad > 0 && (o.ForLoad == 0 || o.ForLoad > out.ForLoad) {
			out = o
		}
	}
	out.ForStorage = s.cluster.NodesFor(stored)
	if out.ForLoad > 0 {
		out.Nodes = max(out.ForLoad, out.ForStorage)
	}
	out.CPU *= size
	out.FrontCPU *= size
	return out
}

// hottestStep returns the step with the most work.
func (s *simulation) hottestStep() int {
	total := make([]float64, len(s.now))
	for _, list := range [2][]*tablet{s.live, s.old} {
		for _, t := range list {
			for _, rates := range [2][]rate{t.rates, t.oldReads} {
				for _, r := range rates {
					total[r.curve] += r.cpu
				}
			}
		}
	}
	best, most := s.warmSteps, -1.0
	for n := s.warmSteps; n < len(s.factors); n++ {
		v := 0.0
		for c, f := range s.factors[n] {
			v += total[c] * f
		}
		if v > most*(1+slack) {
			best, most = n, v
		}
	}
	return best
}

// hottestPart returns the step at which a single front's writes cost the most, or false if there are no curves.
func (s *simulation) hottestPart() (int, bool) {
	if len(s.load.Curves) == 0 {
		return 0, false
	}
	greatest, at := make([]float64, len(s.now)), make([]int, len(s.now))
	for n := s.warmSteps; n < len(s.factors); n++ {
		for c, f := range s.factors[n] {
			if f > greatest[c] {
				greatest[c], at[c] = f, n
			}
		}
	}
	best, most := 0, 0.0
	for i := range s.load.Fronts {
		f := &s.load.Fronts[i]
		if v := f.Writes * s.cost.ofWrite(orKilobyte(f.RowBytes)) * greatest[f.Curve]; v > most {
			best, most = at[f.Curve], v
		}
	}
	return best, most > 0
}

// needAt computes what the load of a step needs, in shares of a server.
func (s *simulation) needAt(n int) Need {
	factors := s.factors[n]
	target := s.cluster.target()
	out := Need{At: s.at(n)}
	reads := s.spread(func(q *Read) float64 {
		if q.Old {
			return 0
		}
		return s.readRate(q, 1).cpu * factors[q.Curve]
	})
	for i := range s.load.Reads {
		if q := &s.load.Reads[i]; q.Old {
			out.CPU += s.readRate(q, 1).cpu * factors[q.Curve]
		}
	}
	split := s.assume.SplitAfter + s.assume.BalanceEvery
	hottest := part{}
	var large []part
	jump := 0
	for i := 0; i < len(s.load.Fronts); {
		p := part{first: i, last: i + 1}
		for jump < len(s.load.Jumps) && s.load.Jumps[jump].Last <= i {
			jump++
		}
		if jump < len(s.load.Jumps) && s.load.Jumps[jump].First == i && s.load.Jumps[jump].Every <= split {
			p.last = s.load.Jumps[jump].Last
		}
		for ; i < p.last; i++ {
			f := &s.load.Fronts[i]
			p.cpu += f.Writes*s.cost.ofWrite(orKilobyte(f.RowBytes))*factors[f.Curve] + reads(i)
		}
		out.CPU += p.cpu
		if p.cpu > hottest.cpu {
			hottest = p
		}
		if p.cpu > target*smallPart && p.cpu <= target*(1+slack) {
			large = append(large, p)
		}
	}
	out.First, out.Last, out.FrontCPU = hottest.first, hottest.last, hottest.cpu
	size := s.cluster.size()
	if hottest.cpu > target*(1+slack) {
		out.Why = s.why(hottest)
		return out
	}
	least := max(int(math.Ceil(out.CPU/target-slack)), 1)
	if least*size <= maxNodes {
		slices.SortFunc(large, func(a, b part) int {
			if a.cpu != b.cpu {
				return compareDown(a.cpu, b.cpu)
			}
			return a.first - b.first
		})
		for ; least*size <= maxNodes; least++ {
			if fits(large, least, target) {
				out.ForLoad = least * size
				return out
			}
		}
	}
	out.Why = fmt.Sprintf("the load needs more than %d nodes, the most that are tried", maxNodes)
	return out
}

func compareDown(a, b float64) int {
	if a > b {
		return -1
	}
	return 1
}

// why says why no number of nodes helps.
func (s *simulation) why(p part) string {
	what := "one front"
	switch {
	case p.last-p.first > 1:
		what = fmt.Sprintf("%d fronts that move together before a split helps", p.last-p.first)
	case s.load.Fronts[p.first].Moves:
		what = "one front, which moves forward as its keys begin with the time,"
	}
	text := fmt.Sprintf("%s needs %.0f%% of a node", what, p.cpu*100)
	if s.cluster.Double {
		text = fmt.Sprintf("%s needs %.0f%% of two nodes that work as one", what, p.cpu*100)
	}
	if p.cpu > 1 {
		return text + ", and no split divides it"
	}
	return fmt.Sprintf("%s, above the target of %.0f%%, and no split divides it", text, s.cluster.target()*100)
}

// fits reports whether parts, the largest first, fit on n servers: each goes to the server with the least load.
func fits(parts []part, n int, most float64) bool {
	loads := make(loads, n)
	for _, p := range parts {
		loads[0] += p.cpu
		if loads[0] > most*(1+slack) {
			return false
		}
		heap.Fix(&loads, 0)
	}
	return true
}

// loads is a heap with the least load at the front.
type loads []float64

func (l loads) Len() int           { return len(l) }
func (l loads) Less(i, j int) bool { return l[i] < l[j] }
func (l loads) Swap(i, j int)      { l[i], l[j] = l[j], l[i] }
func (l *loads) Push(any)          {}
func (l *loads) Pop() any          { return nil }
