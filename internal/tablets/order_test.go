package tablets_test

import (
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/internal/tablets"
)

// designs are the textbook's designs of keys for devices that write once a second.
func designs(devices int) []tablets.Candidate {
	writes := float64(devices)
	one := tablets.Front{Writes: writes, RowBytes: 100, Moves: true}
	salted := make([]tablets.Front, 16)
	for i := range salted {
		salted[i] = tablets.Front{Writes: writes / 16, RowBytes: 100, Moves: true}
	}
	entity := make([]tablets.Front, devices)
	for i := range entity {
		entity[i] = tablets.Front{Writes: 1, RowBytes: 100}
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

// TestDocumentedOrder: entity first is better than salted time, and that better than time first; a whale breaks tenant#time.
func TestDocumentedOrder(t *testing.T) {
	c, err := tablets.Compare(t.Context(), designs(100_000), tablets.Cluster{Nodes: 20}, tablets.CompareOptions{
		Options: tablets.Options{Warm: 20 * time.Minute, Step: 20 * time.Second},
	})
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range c.Results {
		t.Logf("%s: served %.3f, hottest %.2f asked %.2f, balanced %v, tablets %d splits %d moves %d, need %+v", designs(100)[i].Name, r.ServedShare, r.HottestNode.CPU, r.HottestNode.Asked, r.Balanced, r.Tablets, r.Splits, r.Moves, r.Need)
	}
	t.Log(c.Order, c.Held, c.Draws, c.Before)
}

func BenchmarkMillionFronts(b *testing.B) {
	load := designs(1_000_000)[3].Load
	for b.Loop() {
		if _, err := tablets.Simulate(b.Context(), load, tablets.Cluster{Nodes: 130}, tablets.Options{}); err != nil {
			b.Fatal(err)
		}
	}
}
