package tablets_test

import (
	"math"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/examples/internal/tablets"
)

// run simulates a load, or fails the test.
func run(t *testing.T, load tablets.Load, cluster tablets.Cluster, options tablets.Options) *tablets.Result {
	t.Helper()
	r, err := tablets.Simulate(t.Context(), load, cluster, options)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// fronts returns n equal fronts that share a rate of writes.
func fronts(n int, writes float64) []tablets.Front {
	out := make([]tablets.Front, n)
	for i := range out {
		out[i].Writes = writes / float64(n)
	}
	return out
}

func near(t *testing.T, what string, got, want, within float64) {
	t.Helper()
	if !(math.Abs(got-want) <= within) {
		t.Errorf("%s is %v, want %v up to %v", what, got, want, within)
	}
}

// TestClosedForms: where a formula gives the share that is served, the model gives the same.
func TestClosedForms(t *testing.T) {
	t.Run("one front", func(t *testing.T) {
		// All writes are on one node, however many there are.
		for _, writes := range []float64{7_000, 14_000, 28_000, 140_000} {
			r := run(t, tablets.Load{Fronts: []tablets.Front{{Writes: writes, Moves: true}}}, tablets.Cluster{Nodes: 10}, tablets.Options{})
			near(t, "the served share", r.ServedShare, min(1, 14_000/writes), 0.002)
			near(t, "the hottest node", r.HottestNode.Asked, writes/14_000, 1e-6)
		}
	})
	t.Run("equal fronts", func(t *testing.T) {
		// After they are balanced, m nodes serve what m nodes can.
		for _, nodes := range []int{3, 10, 50} {
			for _, load := range []float64{0.5, 1.5} {
				writes := 14_000 * float64(nodes) * load
				r := run(t, tablets.Load{Fronts: fronts(nodes*64, writes)}, tablets.Cluster{Nodes: nodes}, tablets.Options{Warm: time.Hour})
				near(t, "the served share", r.ServedShare, min(1, 1/load), 0.02)
			}
		}
	})
	t.Run("reads over capacity", func(t *testing.T) {
		// Reads of rows of 1 KB, and scans, on one node.
		r := run(t, tablets.Load{Fronts: fronts(8, 0), Reads: []tablets.Read{{Last: 8, Rate: 34_000}}}, tablets.Cluster{Nodes: 1}, tablets.Options{})
		near(t, "the served share of reads", r.ServedShare, 0.5, 1e-9)
		r = run(t, tablets.Load{Fronts: fronts(8, 0), Reads: []tablets.Read{{Last: 8, Rate: 440, Rows: 1e6}}}, tablets.Cluster{Nodes: 1, Storage: tablets.HDD}, tablets.Options{})
		near(t, "the served share of scans on HDD", r.ServedShare, 1/((1./500-1./180e3+1e6/180e3)*440), 1e-9)
	})
}
