package tablets

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

var seeds = flag.Uint64("seeds", 50, "random simulations of TestRules")

// randomCase returns a load, a cluster and options with all that the model knows, all of it small.
func randomCase(rnd *rand.Rand) (Load, Cluster, Options) {
	between := func(low, high float64) float64 { return low * math.Pow(high/low, rnd.Float64()) }
	var load Load
	load.Curves = []Curve{
		func(at time.Duration) float64 { return 1 + math.Sin(at.Minutes()) },
		func(at time.Duration) float64 { return float64(int(at.Minutes()) % 2 * 5) },
	}[:rnd.IntN(3)]
	n := 1 + rnd.IntN(60)
	for range n {
		f := Front{Writes: between(1, 20_000), RowBytes: between(10, 1e4), Curve: rnd.IntN(len(load.Curves) + 1), Moves: rnd.IntN(2) == 0}
		if rnd.IntN(4) == 0 {
			f.Writes = 0
		}
		load.Fronts = append(load.Fronts, f)
	}
	for range rnd.IntN(6) {
		first := rnd.IntN(n)
		load.Reads = append(load.Reads, Read{
			First: first, Last: first + 1 + rnd.IntN(n-first), Rate: between(1, 20_000), Rows: between(1, 1000), RowBytes: between(10, 1e4),
			ByWrites: rnd.IntN(2) == 0, Old: rnd.IntN(2) == 0,
		})
	}
	cluster := Cluster{Nodes: 1 + rnd.IntN(20), Storage: Storage(rnd.IntN(2))}
	return load, cluster, Options{Duration: 10 * time.Minute, Warm: time.Duration(rnd.IntN(2)) * 3 * time.Minute, Seed: rnd.Uint64()}
}

// equal allows for rounding of sums.
func equal(a, b float64) bool { return math.Abs(a-b) <= 1e-6*max(1, math.Abs(a), math.Abs(b)) }

// TestRules checks in each step of random simulations that fronts, work and requests neither appear nor disappear.
func TestRules(t *testing.T) {
	for seed := range *seeds {
		rnd := rand.New(rand.NewPCG(seed, 1))
		load, cluster, options := randomCase(rnd)
		s := newSimulation(&load, cluster, options, draw(rnd))
		s.result.Heat = newHeat(s)
		var refused [2]float64 // requests: by the steps, and by the heatmap
		for n := range s.factors {
			offered, served := s.offered, s.served
			s.run(n)
			refused[0] += (s.offered - offered) - (s.served - served)
			if err := rules(s, n); err != nil {
				t.Fatalf("seed %d, step %d: %v", seed, n, err)
			}
		}
		var heat [3]float64
		for column := range s.result.Heat.Len() {
			for k := range heat {
				total, _ := s.result.Heat.Samples(column, Kind(k), 0, 1)
				heat[k] += total
			}
		}
		refused[1] = heat[Refused]
		if !equal(heat[Reads]+heat[Writes], s.offered) || s.oldCount == 0 && !equal(refused[0], refused[1]) || refused[1] > refused[0]*(1+slack)+1 {
			t.Errorf("seed %d: the heatmap has %v requests, of which %v were refused; want %v and %v", seed, heat[Reads]+heat[Writes], refused[1], s.offered, refused[0])
		}
		if n := s.need(); (n.Nodes == 0) != (n.Why != "") || n.Nodes > 0 && n.CPU > float64(n.Nodes)*targetCPU*(1+slack) {
			t.Errorf("seed %d: %+v is no answer", seed, n)
		}
	}
}

// rules returns which rule a step breaks.
func rules(s *simulation, n int) error {
	at, writes, cost := 0, 0.0, s.old
	for i, t := range s.tablets {
		if t.first != at || t.last <= t.first || t.node < 0 || t.node >= s.cluster.Nodes {
			return fmt.Errorf("tablet %d on node %d has the fronts from %d up to %d; want them from %d on", i, t.node, t.first, t.last, at)
		}
		at = t.last
		for _, w := range t.writes {
			writes += w
		}
		cost += dot(t.cost, s.factors[n])
	}
	wantWrites, wantCost, asked := 0.0, s.old, 0.0
	for i, f := range s.load.Fronts {
		wantWrites += f.Writes
		wantCost += s.writing[i]*s.factors[n][f.Curve] + s.reading[i]
	}
	for _, a := range s.asked {
		asked += a
	}
	if at != len(s.load.Fronts) || !equal(writes, wantWrites) || !equal(cost, wantCost) || !equal(asked, wantCost) {
		return fmt.Errorf("the tablets have %d fronts, %v writes a second and a cost of %v, the nodes of %v; want %d, %v, %v", at, writes, cost, asked, len(s.load.Fronts), wantWrites, wantCost)
	}
	return nil
}

// TestCut: a split is between two fronts, where the halves differ least.
func TestCut(t *testing.T) {
	for _, test := range []struct {
		weights []float64
		want    int
		ok      bool
	}{
		{[]float64{1}, 0, false},
		{[]float64{0, 0}, 0, false},
		{[]float64{1, 1}, 1, true},
		{[]float64{1, 1, 1, 1}, 2, true},
		{[]float64{10, 1, 1, 1}, 1, true},
		{[]float64{1, 1, 1, 10}, 3, true},
		{[]float64{1, 1, 10, 1, 1}, 3, true},
		{[]float64{0, 0, 0, 5}, 3, true},
	} {
		load := Load{Curves: []Curve{func(time.Duration) float64 { return 1 }}}
		for i, w := range test.weights { // of which parts have another curve
			load.Fronts = append(load.Fronts, Front{Writes: w, RowBytes: 1000, Curve: i / 2 % 2})
		}
		s := newSimulation(&load, Cluster{Nodes: 1}, Options{Duration: time.Minute}, defaults())
		at, ok := s.cut(0, len(test.weights), s.factors[0])
		best := math.Inf(1)
		for i := 1; i < len(test.weights); i++ {
			best = min(best, imbalance(test.weights, i))
		}
		if ok != test.ok || ok && (at != test.want && imbalance(test.weights, at) != best) {
			t.Errorf("cut of %v is %d, %v; want %d, %v", test.weights, at, ok, test.want, test.ok)
		}
	}
}

func imbalance(weights []float64, at int) float64 {
	left, right := 0.0, 0.0
	for _, w := range weights[:at] {
		left += w
	}
	for _, w := range weights[at:] {
		right += w
	}
	return math.Abs(left - right)
}

// TestSameSeed: the same seed gives the same samples, and another seed other ones.
func TestSameSeed(t *testing.T) {
	results := func(seed uint64) (out []string) {
		for i := range uint64(20) {
			load, cluster, options := randomCase(rand.New(rand.NewPCG(i, 2)))
			r, err := Simulate(t.Context(), load, cluster, options)
			if err != nil {
				t.Fatal(err)
			}
			total, samples := r.Heat.Samples(0, Writes, 10, seed)
			out = append(out, fmt.Sprintf("%v %v %+v %v", r.ServedShare, r.HottestNode, r.Need, total))
			for front, at := range samples {
				out = append(out, fmt.Sprint(front, at))
			}
		}
		return out
	}
	first := results(1)
	if !slices.Equal(first, results(1)) {
		t.Error("the same seed gives two answers")
	}
	if slices.Equal(first, results(2)) {
		t.Error("two seeds give the same samples")
	}
}
