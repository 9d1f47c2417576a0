package tablets_test

import (
	"strings"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/examples/internal/tablets"
)

// TestMillionDevices: a million devices that write once a second, on 130 nodes, for 100 tenants of which one has two
// thirds of the devices.
func TestMillionDevices(t *testing.T) {
	load := tablets.Load{Fronts: make([]tablets.Front, 1_000_000)}
	for i := range load.Fronts {
		load.Fronts[i] = tablets.Front{Writes: 1, RowBytes: 100}
	}
	first := 0
	for tenant := range 100 {
		last := first + 3_333
		if tenant == 30 {
			last = first + 670_033
		}
		load.Reads = append(load.Reads, tablets.Read{First: first, Last: last, Rate: float64(last-first) / 100, Rows: 1, RowBytes: 1000}) // the latest point of a device
		first = last
	}
	r := run(t, load, tablets.Cluster{Nodes: 130}, tablets.Options{Warm: 20 * time.Minute})
	// A write of 100 bytes costs 0.73 of one of 1 KB.
	want := 1e6/14_000*0.73 + 1e4/17_000
	near(t, "the work in nodes", r.Need.CPU, want, 0.02)
	if r.ServedShare < 0.999 || r.Need.Nodes != 88 || r.Balanced <= 0 || r.Balanced > 20*time.Minute {
		t.Errorf("%.4f is served, balanced after %v, and %d nodes are needed; want all within 20 minutes, and 88 at 60%%", r.ServedShare, r.Balanced, r.Need.Nodes)
	}
	if r.HottestNode > 0.6 || r.HottestNode < want/130 {
		t.Errorf("the hottest node is at %.0f%%, want a little more than the mean, %.0f%%", r.HottestNode*100, want/130*100)
	}
}

// TestNeed: the nodes that the hottest period needs.
func TestNeed(t *testing.T) {
	burst := []tablets.Curve{func(at time.Duration) float64 {
		if at == 30*time.Minute {
			return 4
		}
		return 1
	}}
	with := func(curve int, list []tablets.Front) []tablets.Front {
		for i := range list {
			list[i].Curve = curve
		}
		return list
	}
	for _, test := range []struct {
		name string
		load tablets.Load
		want int
		why  string
	}{
		{"two nodes' work", tablets.Load{Fronts: fronts(1000, 28_000)}, 4, ""},
		{"a burst", tablets.Load{Fronts: with(1, fronts(1000, 28_000)), Curves: burst}, 14, ""},
		{"reads", tablets.Load{Fronts: fronts(1000, 0), Reads: []tablets.Read{{Last: 1000, Rate: 17_000, Rows: 1, RowBytes: 1000}}}, 2, ""},
		// Together they need 4.1 nodes, but two of them do not share one.
		{"seven large fronts", tablets.Load{Fronts: fronts(7, 7*4_900)}, 7, ""},
		{"one too large", tablets.Load{Fronts: fronts(1, 21_000)}, 0, "one front needs 150% of a node, and no split divides it"},
		{"one above the target", tablets.Load{Fronts: fronts(1, 10_500)}, 0, "one front needs 75% of a node, above the target of 60%, and no split divides it"},
		{"a burst of one", tablets.Load{Fronts: with(1, fronts(1, 4_000)), Curves: burst}, 0, "one front needs 114% of a node"},
		{"a hot entity that is read", tablets.Load{Fronts: fronts(10, 0), Reads: []tablets.Read{{First: 3, Last: 4, Rate: 34_000, Rows: 1, RowBytes: 1000}}}, 0, "one front needs 200% of a node"},
		{"old rows that are read", tablets.Load{Fronts: fronts(1, 0), Reads: []tablets.Read{{Last: 1, Rate: 34_000, Rows: 1, RowBytes: 1000, Old: true}}}, 4, ""},
		{"everything", tablets.Load{Fronts: fronts(100_000, 1e8)}, 0, "the load needs more than 1000 nodes"},
	} {
		r := run(t, test.load, tablets.Cluster{Nodes: 4}, tablets.Options{})
		if r.Need.Nodes != test.want || test.why == "" != (r.Need.Why == "") || !strings.Contains(r.Need.Why, test.why) {
			t.Errorf("%s: the need is %+v, want %d nodes, %q", test.name, r.Need, test.want, test.why)
		}
	}
}

// TestOldReads: reads of old rows are spread over all nodes, so they leave the front alone.
func TestOldReads(t *testing.T) {
	load := func(old bool) tablets.Load {
		return tablets.Load{
			Fronts: []tablets.Front{{Writes: 7_000, RowBytes: 1000, Moves: true}},
			Reads:  []tablets.Read{{Last: 1, Rate: 17_000, Rows: 1, RowBytes: 1000, Old: old}},
		}
	}
	newest := run(t, load(false), tablets.Cluster{Nodes: 10}, tablets.Options{})
	near(t, "the served share of a node's reads with half a node's writes", newest.ServedShare, 1/1.5, 0.001)
	if old := run(t, load(true), tablets.Cluster{Nodes: 10}, tablets.Options{}); old.ServedShare < 0.999 {
		t.Errorf("%.3f of reads of old rows are served", old.ServedShare)
	}
}

// TestSamples: a front has the share of the samples that it has of the requests, in each column.
func TestSamples(t *testing.T) {
	load := tablets.Load{
		Fronts: fronts(500, 5_000),
		Reads:  []tablets.Read{{First: 100, Last: 200, Rate: 1000, Rows: 1, RowBytes: 1000}, {First: 450, Last: 451, Rate: 3000, Rows: 1, RowBytes: 1000}},
		Curves: []tablets.Curve{func(at time.Duration) float64 { return float64(at / (30 * time.Minute)) }}, // only in the second half
	}
	load.Fronts[7].Writes = 5_000
	load.Fronts[499] = tablets.Front{Writes: 10_000, RowBytes: 1000, Curve: 1}
	r := run(t, load, tablets.Cluster{Nodes: 10}, tablets.Options{})
	share := func(column int, k tablets.Kind, first, last int) float64 {
		_, samples := r.Heat.Samples(column, k, 1000, 1)
		n, all := 0.0, 0.0
		for front, at := range samples {
			if int(at/time.Minute) != column {
				t.Fatalf("a sample of column %d is from %v", column, at)
			}
			if all++; front >= first && front < last {
				n++
			}
		}
		return n / all
	}
	near(t, "the share of a front's writes", share(0, tablets.Writes, 7, 8), 5000./9980, 0.002)
	near(t, "the share of the others", share(0, tablets.Writes, 100, 300), 2000./9980, 0.002)
	near(t, "the share of a front that is not written yet", share(0, tablets.Writes, 499, 500), 0, 0)
	near(t, "the share of a front that is written now", share(59, tablets.Writes, 499, 500), 10_000./19_980, 0.01)
	near(t, "the share of a front that is read", share(0, tablets.Reads, 450, 451), 0.75, 0.002)
	near(t, "the share of those that are read alike", share(0, tablets.Reads, 100, 150), 0.125, 0.002)
}
