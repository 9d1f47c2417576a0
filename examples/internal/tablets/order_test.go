package tablets_test

import (
	"cmp"
	"slices"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/examples/internal/tablets"
)

// designs are the textbook's designs of keys for devices that write once a second. The last design joins
// its devices into a number of fronts.
func designs(devices, fronts int) []tablets.Candidate {
	writes := float64(devices)
	one := tablets.Front{Writes: writes, RowBytes: 100, Moves: true}
	salted := make([]tablets.Front, 16)
	for i := range salted {
		salted[i] = tablets.Front{Writes: writes / 16, RowBytes: 100, Moves: true}
	}
	entity := make([]tablets.Front, fronts)
	for i := range entity {
		entity[i] = tablets.Front{Writes: writes / float64(fronts), RowBytes: 100}
	}
	// Of 100 tenants, one has nine tenths of the devices.
	tenants := make([]tablets.Front, 100)
	for i := range tenants {
		tenants[i] = tablets.Front{Writes: writes / 10 / 99, RowBytes: 100, Moves: true}
	}
	tenants[40].Writes = writes * 0.9
	return []tablets.Candidate{
		{Name: "time#device", Load: tablets.Load{Fronts: []tablets.Front{one}}},
		{Name: "tenant#time", Load: tablets.Load{Fronts: tenants}},
		{Name: "salt(16)#time#device", Load: tablets.Load{Fronts: salted}},
		{Name: "device#time", Load: tablets.Load{Fronts: entity}},
	}
}

// TestDocumentedOrder: entity first is better than salted time, and that better than time first; a whale breaks
// tenant#time.
func TestDocumentedOrder(t *testing.T) {
	c, err := tablets.Compare(t.Context(), designs(400_000, 40_000), tablets.Cluster{Nodes: 60}, tablets.CompareOptions{
		Options: tablets.Options{Warm: 20 * time.Minute, Step: 20 * time.Second},
	})
	if err != nil {
		t.Fatal(err)
	}
	if want := []int{3, 2, 1, 0}; !slices.Equal(c.Order, want) || c.Draws != 40 || c.Held != 40 {
		t.Errorf("the order is %v, held in %d of %d draws; want %v in all: %v", c.Order, c.Held, c.Draws, want, c.Before)
	}
	for i, r := range c.Results {
		if entityFirst := i == 3; entityFirst != (r.Need.Nodes > 0) {
			t.Errorf("%s needs %d nodes (%q): only entity first gains by nodes", designs(100, 1)[i].Name, r.Need.Nodes, r.Need.Why)
		}
	}
}

// TestOrderThatDependsOnAssumptions: which of two designs is better depends on what a large row costs, so the order
// holds in some draws only.
func TestOrderThatDependsOnAssumptions(t *testing.T) {
	candidates := []tablets.Candidate{
		{Name: "many small rows", Load: tablets.Load{Fronts: []tablets.Front{{Writes: 13_000}}}},
		{Name: "few large rows", Load: tablets.Load{Fronts: []tablets.Front{{Writes: 7_000, RowBytes: 3_000}}}},
	}
	c, err := tablets.Compare(t.Context(), candidates, tablets.Cluster{Nodes: 3}, tablets.CompareOptions{Draws: 60})
	if err != nil {
		t.Fatal(err)
	}
	// Large rows cost more if more than 43% of the cost grow with the size, which 30% of the draws say.
	if !slices.Equal(c.Order, []int{1, 0}) || c.Held < 32 || c.Held > 52 || c.Before[1][0]+c.Before[0][1] > c.Draws || c.Before[0][1] != c.Draws-c.Held {
		t.Errorf("the order %v held in %d of %d draws, with %v", c.Order, c.Held, c.Draws, c.Before)
	}
	for _, a := range c.Broken {
		if a.WriteByBytes < 0.35 {
			t.Errorf("the order is broken with %+v", a)
		}
	}
	if len(c.Broken) != min(10, c.Draws-c.Held) {
		t.Errorf("%d assumptions break the order in %d draws", len(c.Broken), c.Draws-c.Held)
	}
	again, err := tablets.Compare(t.Context(), candidates, tablets.Cluster{Nodes: 3}, tablets.CompareOptions{Draws: 60})
	if err != nil || again.Held != c.Held || !slices.Equal(again.Broken, c.Broken) {
		t.Errorf("the same seed held in %d draws and then in %d: %v", c.Held, again.Held, err)
	}
}

// TestBetter: of two bad results, one is still better.
func TestBetter(t *testing.T) {
	result := func(served float64, nodes int, asked float64) *tablets.Result {
		return &tablets.Result{ServedShare: served, Need: tablets.Need{Nodes: nodes}, HottestNode: tablets.HotNode{Asked: asked}}
	}
	ordered := []*tablets.Result{
		result(1, 5, 0.3), result(1, 5, 0.5), result(0.997, 9, 0.3), result(0.999, 0, 0.3), result(0.98, 5, 0.3), result(0.01, 0, 50),
		result(0.001, 0, 700), result(0.0003, 0, 700), result(0, 0, 700), result(0, 0, 9000),
	}
	for i, a := range ordered {
		for j, b := range ordered {
			if got, want := tablets.Better(a, b), cmp.Compare(i, j); got != want {
				t.Errorf("the order of %d and %d is %d, want %d", i, j, got, want)
			}
		}
	}
	if tablets.Better(result(1, 5, 0.31), result(0.998, 5, 0.32)) != 0 {
		t.Error("a difference of nothing makes a design better")
	}
}

func BenchmarkMillionFronts(b *testing.B) {
	load := designs(1_000_000, 1_000_000)[3].Load
	for b.Loop() {
		if _, err := tablets.Simulate(b.Context(), load, tablets.Cluster{Nodes: 130}, tablets.Options{}); err != nil {
			b.Fatal(err)
		}
	}
}
