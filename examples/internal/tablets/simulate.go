package tablets

import (
	"cmp"
	"container/heap"
	"context"
	"fmt"
	"slices"
	"time"
)

// Options configure a simulation.
type Options struct {
	// Duration is what is simulated, up to 31 days.
	Duration time.Duration
	// Warm is how long the load runs before that, with each curve at its greatest value. Only Result.Balanced includes
	// it.
	Warm time.Duration
	// Seed decides which assumptions Compare draws.
	Seed uint64
}

// Result is what happened in the simulated time, without the warm part.
type Result struct {
	// ServedShare is the share of requests that were served: 1 if none was made. A read is one request, whatever it
	// returns, and a write one row.
	ServedShare float64
	// Balanced is when, after the start of the warm part, the nodes first served all that was asked of them, for 10
	// minutes (or a sixth of the simulated time, if that is less). It is negative if that did not happen.
	Balanced time.Duration
	// HottestNode is the most that was asked of a node in a minute, and HottestTablet of a tablet between two rounds of
	// splits, in shares of a node's time.
	HottestNode, HottestTablet float64
	// Tablets is how many there are at the end.
	Tablets int
	// Need says how many nodes the load needs.
	Need Need
	// Heat says where the load was.
	Heat *Heat
}

const (
	maxTablets = 20_000
	columns    = 60 // of Heat
	calmTime   = 10 * time.Minute
)

// simulation is the state of a table and a cluster.
type simulation struct {
	load    *Load
	cluster Cluster
	assume  assumptions
	cost    costs

	step      time.Duration
	dt        float64     // step in seconds
	factors   [][]float64 // by step, then by curve
	warmSteps int

	writing, reading []float64 // by front: the cost of a second, where the curve is 1
	reads, oldReads  []float64 // by front: requests in a second
	old, oldCount    float64   // of reads of old rows in a second, on all nodes together: their cost, and their number

	tablets         []tablet
	asked           []float64 // by node: in this step
	minute          []float64 // by node: in this minute, in seconds of work
	sinceMinute     float64
	sinceRound      float64
	calmSince       float64
	offered, served float64 // requests
	result          Result
}

// tablet is a range of fronts.
type tablet struct {
	first, last  int // fronts, without last
	node         int
	cost, writes []float64 // by curve: of a second, where the curve is 1. Reads cost the same in each second
	reads        float64   // requests of a second
	asked        float64   // since the last round, in seconds of work
}

// Simulate runs the model. The work is proportional to the number of fronts plus steps times tablets. The error is that
// of ctx.
func Simulate(ctx context.Context, load Load, cluster Cluster, options Options) (*Result, error) {
	return simulate(ctx, &load, cluster, options, defaults(), true)
}

// simulate leaves out the heatmap unless it is wanted.
func simulate(ctx context.Context, load *Load, cluster Cluster, options Options, assume assumptions, withHeat bool) (*Result, error) {
	s := newSimulation(load, cluster, options, assume)
	if withHeat {
		s.result.Heat = newHeat(s)
	}
	for n := range s.factors {
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("tablets: simulation ended at step %d of %d: %w", n, len(s.factors), context.Cause(ctx))
		}
		s.run(n)
	}
	r := &s.result
	r.ServedShare = 1
	if s.offered > 0 {
		r.ServedShare = s.served / s.offered
	}
	r.Tablets = len(s.tablets)
	r.Need = s.need()
	return r, nil
}

func newSimulation(load *Load, cluster Cluster, o Options, assume assumptions) *simulation {
	s := &simulation{load: load, cluster: cluster, assume: assume, cost: assume.costs(nodes[cluster.Storage])}
	s.result.Balanced = -1
	s.step = max(10*time.Second, ((o.Duration+o.Warm)/10_000 + time.Second).Truncate(time.Second))
	s.dt = s.step.Seconds()
	s.evaluateCurves(o)
	s.addUp()
	s.asked, s.minute = make([]float64, cluster.Nodes), make([]float64, cluster.Nodes)
	s.tablets = []tablet{s.tablet(0, len(load.Fronts))}
	return s
}

// evaluateCurves asks each curve for its factor of each step.
func (s *simulation) evaluateCurves(o Options) {
	s.warmSteps = int(o.Warm / s.step)
	greatest := make([]float64, len(s.load.Curves)+1)
	s.factors = slices.Repeat([][]float64{greatest}, s.warmSteps)
	for i := range max(int(o.Duration/s.step), 1) {
		row := []float64{1}
		for _, curve := range s.load.Curves {
			row = append(row, curve(time.Duration(i)*s.step))
		}
		for c, f := range row {
			greatest[c] = max(greatest[c], f)
		}
		s.factors = append(s.factors, row)
	}
}

// addUp computes what each front costs.
func (s *simulation) addUp() {
	fronts := s.load.Fronts
	for _, list := range []*[]float64{&s.writing, &s.reading, &s.reads, &s.oldReads} {
		*list = make([]float64, len(fronts))
	}
	for i := range fronts {
		s.writing[i] = fronts[i].Writes * s.cost.ofWrite(fronts[i].RowBytes)
	}
	for _, q := range s.load.Reads {
		cost, all := s.cost.ofRead(q.Rows, q.RowBytes), 0.0
		if q.ByWrites {
			for i := q.First; i < q.Last; i++ {
				all += fronts[i].Writes
			}
		}
		for i := q.First; i < q.Last; i++ {
			rate := q.Rate / float64(q.Last-q.First)
			if all > 0 {
				rate = q.Rate * fronts[i].Writes / all
			}
			if q.Old {
				s.oldReads[i] += rate
				continue
			}
			s.reads[i] += rate
			s.reading[i] += rate * cost
		}
		if q.Old {
			s.old += q.Rate * cost
			s.oldCount += q.Rate
		}
	}
}

// tablet returns a tablet of a range of fronts.
func (s *simulation) tablet(first, last int) tablet {
	t := tablet{first: first, last: last, cost: make([]float64, len(s.load.Curves)+1), writes: make([]float64, len(s.load.Curves)+1)}
	for i := first; i < last; i++ {
		f := &s.load.Fronts[i]
		t.cost[f.Curve] += s.writing[i]
		t.writes[f.Curve] += f.Writes
		t.cost[0] += s.reading[i]
		t.reads += s.reads[i]
	}
	return t
}

// dot returns what numbers by curve are at the factors of the curves.
func dot(numbers, factors []float64) (sum float64) {
	for c, f := range factors {
		sum += numbers[c] * f
	}
	return sum
}

// run serves one step and then, if it is time, splits and moves tablets.
func (s *simulation) run(n int) {
	factors := s.factors[n]
	for i := range s.asked {
		s.asked[i] = s.old / float64(s.cluster.Nodes)
	}
	for i := range s.tablets {
		t := &s.tablets[i]
		asked := dot(t.cost, factors)
		s.asked[t.node] += asked
		t.asked += asked * s.dt
	}
	if n >= s.warmSteps {
		s.record(n, factors)
	}
	now := float64(n+1) * s.dt
	if slices.Max(s.asked) > 1+slack {
		s.calmSince = now
	}
	if calm := min(calmTime.Seconds(), float64(len(s.factors))*s.dt/6); s.result.Balanced < 0 && now-s.calmSince >= calm {
		s.result.Balanced = time.Duration(s.calmSince * float64(time.Second))
	}
	if s.sinceRound += s.dt; s.sinceRound >= s.assume[splitAfter]-slack {
		s.round(n, factors)
	}
}

// share is the share of requests that a node serves if it is asked for this share of its time.
func share(asked float64) float64 { return 1 / max(asked, 1) }

// record adds up what the result says of a step.
func (s *simulation) record(n int, factors []float64) {
	for i, asked := range s.asked {
		s.minute[i] += asked * s.dt
		s.offered += s.oldCount / float64(len(s.asked)) * s.dt
		s.served += s.oldCount / float64(len(s.asked)) * s.dt * share(asked)
	}
	for i := range s.tablets {
		t := &s.tablets[i]
		requests, served := (t.reads+dot(t.writes, factors))*s.dt, share(s.asked[t.node])
		s.offered += requests
		s.served += requests * served
		if s.result.Heat != nil && served < 1 {
			s.result.Heat.refuse(n, t, 1-served)
		}
	}
	if s.sinceMinute += s.dt; s.sinceMinute >= 60 || n == len(s.factors)-1 {
		s.result.HottestNode = max(s.result.HottestNode, slices.Max(s.minute)/s.sinceMinute)
		clear(s.minute)
		s.sinceMinute = 0
	}
}

// round splits the tablets of which too much was asked since the last round, and then divides all tablets over the
// nodes.
func (s *simulation) round(n int, factors []float64) {
	var next []tablet
	for _, t := range s.tablets {
		load := t.asked / s.sinceRound
		if n >= s.warmSteps {
			s.result.HottestTablet = max(s.result.HottestTablet, load)
		}
		at, ok := 0, false
		if load > s.assume[splitLoad] && len(next) < maxTablets {
			at, ok = s.cut(t.first, t.last, factors)
		}
		if !ok {
			next = append(next, t)
			continue
		}
		next = append(next, s.tablet(t.first, at), s.tablet(at, t.last))
	}
	s.tablets = next
	order := make([]int, len(next))
	loads := make([]float64, len(next))
	for i := range next {
		order[i], loads[i], next[i].asked = i, dot(next[i].cost, factors), 0
	}
	slices.SortStableFunc(order, func(a, b int) int { return -cmp.Compare(loads[a], loads[b]) })
	p := newPlaces(s.cluster.Nodes)
	for _, i := range order {
		next[i].node = p.put(loads[i])
	}
	s.sinceRound = 0
}

// cut returns the front at which a range is split, so that what is asked of both halves differs least, or false if
// there is one front, or nothing is asked.
func (s *simulation) cut(first, last int, factors []float64) (at int, ok bool) {
	weight := func(i int) float64 { return s.writing[i]*factors[s.load.Fronts[i].Curve] + s.reading[i] }
	all := 0.0
	for i := first; i < last; i++ {
		all += weight(i)
	}
	if last-first < 2 || all <= 0 {
		return 0, false
	}
	left := weight(first)
	for at = first + 1; at < last-1 && left+weight(at)/2 < all/2; at++ {
		left += weight(at)
	}
	return at, true
}

// places are nodes, the one with the least load first.
type places struct {
	node []int
	load []float64
}

func newPlaces(n int) *places {
	p := &places{load: make([]float64, n)}
	for i := range n {
		p.node = append(p.node, i)
	}
	return p
}

// put adds a load to the node with the least, and returns that.
func (p *places) put(load float64) int {
	node := p.node[0]
	p.load[0] += load
	heap.Fix(p, 0)
	return node
}

func (p *places) Len() int           { return len(p.node) }
func (p *places) Less(i, j int) bool { return p.load[i] < p.load[j] }
func (p *places) Swap(i, j int) {
	p.node[i], p.node[j] = p.node[j], p.node[i]
	p.load[i], p.load[j] = p.load[j], p.load[i]
}
func (p *places) Push(any) {}
func (p *places) Pop() any { return nil }
