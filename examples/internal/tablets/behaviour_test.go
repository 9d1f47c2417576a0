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
		load.Reads = append(load.Reads, tablets.Read{First: first, Last: last, Rate: float64(last-first) / 100}) // the latest point of a device
		first = last
	}
	r := run(t, load, tablets.Cluster{Nodes: 130}, tablets.Options{Warm: 20 * time.Minute})
	// A write of 100 bytes costs 0.73 of one of 1 KB.
	want := 1e6/14_000*0.73 + 1e4/17_000
	near(t, "the work in nodes", r.Need.CPU, want, 0.02)
	if r.ServedShare < 0.999 || r.Need.Nodes != 88 || r.Balanced <= 0 || r.Balanced > 20*time.Minute {
		t.Errorf("%.4f is served, balanced after %v, and %d nodes are needed; want all within 20 minutes, and 88 at 60%%", r.ServedShare, r.Balanced, r.Need.Nodes)
	}
	if r.HottestNode.CPU > 0.6 || r.HottestNode.CPU < want/130 {
		t.Errorf("the hottest node is at %.0f%%, want a little more than the mean, %.0f%%", r.HottestNode.CPU*100, want/130*100)
	}
}

// TestJumps: fronts that move together before a split helps are as one, and those that stay for long are not.
func TestJumps(t *testing.T) {
	const nodes, writes = 10, 70_000
	served := func(every time.Duration) *tablets.Result {
		load := tablets.Load{Fronts: fronts(640, writes)}
		if every > 0 {
			load.Jumps = []tablets.Jump{{Last: 640, Every: every}}
		}
		return run(t, load, tablets.Cluster{Nodes: nodes}, tablets.Options{Duration: 2 * time.Hour, Warm: 20 * time.Minute, Step: 10 * time.Second})
	}
	minute, hour, never := served(time.Minute), served(time.Hour), served(0)
	near(t, "the served share with the minute first", minute.ServedShare, 14_000./writes+1./120*0.8, 0.005)
	if minute.Need.Nodes != 0 || !strings.Contains(minute.Need.Why, "640 fronts that move together") {
		t.Errorf("with the minute first the need is %+v", minute.Need)
	}
	if !(hour.ServedShare > 0.9 && hour.ServedShare < 0.99 && never.ServedShare > 0.999) {
		t.Errorf("%.3f is served with the hour first and %.3f without; want a loss of some minutes after each hour", hour.ServedShare, never.ServedShare)
	}
}

// TestMerges: tablets of a new table that nobody uses are merged.
func TestMerges(t *testing.T) {
	load := tablets.Load{Fronts: fronts(100, 10)}
	for at := 1; at < 100; at++ {
		load.Splits = append(load.Splits, at)
	}
	r := run(t, load, tablets.Cluster{Nodes: 3}, tablets.Options{Duration: 3 * time.Hour})
	if r.Tablets != 1 || r.Merges != 99 || r.Splits != 0 {
		t.Errorf("of 100 cold tablets %d are left after %d merges and %d splits, want 1", r.Tablets, r.Merges, r.Splits)
	}
	near(t, "the bytes stored", r.Stored, 10*1000*3*3600, 1)
	if r.Columns[0].Tablets != 100 {
		t.Errorf("there are %d tablets before MergeAfter, want 100", r.Columns[0].Tablets)
	}
}

// TestSizes: tablets are split by size, a single front by what it wrote before.
func TestSizes(t *testing.T) {
	for _, n := range []int{1, 100} {
		load := tablets.Load{Fronts: fronts(n, 1000)} // 3.6 GB an hour
		load.Fronts[0].Stored = 20e9
		r := run(t, load, tablets.Cluster{Nodes: 3}, tablets.Options{})
		near(t, "the bytes stored", r.Stored, 23.6e9, 0.01e9)
		if r.Tablets < 24 || r.Tablets > 64 {
			t.Errorf("%.1f GB of %d fronts are %d tablets of at most 1 GB", r.Stored/1e9, n, r.Tablets)
		}
		if r.Need.ForStorage != 1 {
			t.Errorf("%v bytes need %d nodes", r.Stored, r.Need.ForStorage)
		}
	}
	r := run(t, tablets.Load{Fronts: []tablets.Front{{Stored: 100e12}}}, tablets.Cluster{Nodes: 40}, tablets.Options{})
	if want := 34; r.Need.Nodes != want || r.Tablets > 20_000 { // 100 TB at 60% of 5 TB
		t.Errorf("100 TB need %d nodes and %d tablets, want %d nodes", r.Need.Nodes, r.Tablets, want)
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
		name    string
		load    tablets.Load
		cluster tablets.Cluster
		want    int
		why     string
	}{
		{"two nodes' work", tablets.Load{Fronts: fronts(1000, 28_000)}, tablets.Cluster{}, 4, ""},
		{"to be used fully", tablets.Load{Fronts: fronts(1000, 28_000)}, tablets.Cluster{TargetCPU: 1}, 2, ""},
		{"a burst", tablets.Load{Fronts: with(1, fronts(1000, 28_000)), Curves: burst}, tablets.Cluster{}, 14, ""},
		{"a burst of reads", tablets.Load{Fronts: fronts(1000, 0), Reads: []tablets.Read{{Last: 1000, Rate: 17_000, Curve: 1}}, Curves: burst}, tablets.Cluster{}, 7, ""},
		// Together they need 4.1 nodes, but two of them do not share one.
		{"seven large fronts", tablets.Load{Fronts: fronts(7, 7*4_900)}, tablets.Cluster{}, 7, ""},
		{"one too large", tablets.Load{Fronts: fronts(1, 21_000)}, tablets.Cluster{}, 0, "one front needs 150% of a node, and no split divides it"},
		{"one above the target", tablets.Load{Fronts: fronts(1, 10_500)}, tablets.Cluster{}, 0, "one front needs 75% of a node, above the target of 60%, and no split divides it"},
		{"one on two nodes", tablets.Load{Fronts: fronts(1, 16_000)}, tablets.Cluster{Double: true}, 2, ""},
		{"a burst of one", tablets.Load{Fronts: with(1, fronts(1, 4_000)), Curves: burst}, tablets.Cluster{}, 0, "one front needs 114% of a node"},
		{"a hot entity that is read", tablets.Load{Fronts: fronts(10, 0), Reads: []tablets.Read{{First: 3, Last: 4, Rate: 34_000}}}, tablets.Cluster{}, 0, "one front needs 200% of a node"},
		{"old rows that are read", tablets.Load{Fronts: []tablets.Front{{Stored: 1e12}}, Reads: []tablets.Read{{Last: 1, Rate: 34_000, Old: true}}}, tablets.Cluster{}, 4, ""},
		{"everything", tablets.Load{Fronts: fronts(100_000, 1e8)}, tablets.Cluster{}, 0, "the load needs more than 1000 nodes"},
	} {
		test.cluster.Nodes = 4
		r := run(t, test.load, test.cluster, tablets.Options{Step: time.Minute})
		if r.Need.Nodes != test.want || test.why == "" != (r.Need.Why == "") || !strings.Contains(r.Need.Why, test.why) {
			t.Errorf("%s: the need is %+v, want %d nodes, %q", test.name, r.Need, test.want, test.why)
		}
	}
}

// TestOldReads: reads of old rows spread over the tablets that have them, so they leave the front alone.
func TestOldReads(t *testing.T) {
	load := func(old bool) tablets.Load {
		return tablets.Load{
			Fronts: []tablets.Front{{Writes: 7_000, Stored: 50e9, Moves: true}},
			Reads:  []tablets.Read{{Last: 1, Rate: 17_000, Old: old}},
		}
	}
	newest := run(t, load(false), tablets.Cluster{Nodes: 10}, tablets.Options{})
	near(t, "the served share of a node's reads with half a node's writes", newest.ServedShare, 1/1.5, 0.001)
	if old := run(t, load(true), tablets.Cluster{Nodes: 10}, tablets.Options{}); old.ServedShare < 0.999 {
		t.Errorf("%.3f of reads of 51 tablets are served", old.ServedShare)
	}
}

// TestSamples: a front has the share of the samples that it has of the requests, in each column.
func TestSamples(t *testing.T) {
	load := tablets.Load{
		Fronts: fronts(500, 5_000),
		Reads:  []tablets.Read{{First: 100, Last: 200, Rate: 1000}, {First: 450, Last: 451, Rate: 3000}},
		Curves: []tablets.Curve{func(at time.Duration) float64 { return float64(at / (30 * time.Minute)) }}, // only in the second half
	}
	load.Fronts[7].Writes = 5_000
	load.Fronts[499] = tablets.Front{Writes: 10_000, Curve: 1}
	r := run(t, load, tablets.Cluster{Nodes: 10}, tablets.Options{Columns: 2, Lines: 9})
	share := func(column int, k tablets.Kind, first, last int) float64 {
		n, all := 0.0, 0.0
		for front, at := range r.Heat.Samples(column, k, 1000, 1) {
			if int(at/(30*time.Minute)) != column {
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
	near(t, "the share of a front that is written now", share(1, tablets.Writes, 499, 500), 10_000./19_980, 0.01)
	near(t, "the share of a front that is read", share(0, tablets.Reads, 450, 451), 0.75, 0.002)
	near(t, "the share of those that are read alike", share(0, tablets.Reads, 100, 150), 0.125, 0.002)
}
