package lab

import (
	"flag"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/examples/internal/heatview"
	"github.com/tidemark-go/tidemark/examples/internal/tablets"
)

var everyWorkload = flag.Bool("workloads", false, "simulate each candidate of the workloads that ship, too")

const frontsFile = `
name: trucks
duration: 1h
starts: "07:00"
tenants: {count: 10, largest: 70%}
datasets:
  - name: positions
    fields: [depot(50), truck]
    entities: 20k
    every: 250ms
    bytes: 200
    keep: 1d
queries:
  - {kind: latest, rate: 100/s}
  - {kind: latest_many, entities: 20, rate: 10/s}
  - {kind: range, last: 1m, rate: 10/s}
  - {kind: under, fields: 1, rate: 5/s}
  - {kind: aggregate, last: 10m, every: 1m, rate: 1/s}
candidates:
  - {name: truck first, key: tenant#entity#~time}
  - {name: with heads, key: tenant#entity#~time, heads: 1}
  - {name: with a rollup, key: tenant#entity#~time, rollup: 1m}
  - {name: salted trucks, key: tenant#salt(4)#entity#~time}
  - {name: depot and time, key: tenant#depot#time#truck}
  - {name: salted time, key: salt(16)#time#depot#truck}
  - {name: tenant and time, key: tenant#time#depot#truck}
  - {name: time first, key: time#depot#truck}
`

func (p *Plan) frontsOf(c *candidate) (*fronts, error) {
	list, err := p.fronts([]*candidate{c})
	if err != nil {
		return nil, err
	}
	return list[0], nil
}

// TestFronts: the model gets every write and every query of a file, at the places that the key of each candidate says.
func TestFronts(t *testing.T) {
	p := planOf(t, frontsFile)
	want := map[string]struct {
		fronts int
		extra  float64 // rows a second besides those of points
		single float64 // requests a second: those that look at about one row
	}{
		"truck first": {20_000, 0, 100 + 200 + 5*50}, "with heads": {40_000, 80_000, 100 + 200}, "with a rollup": {40_000, 80_000 + 20_000./60, 100 + 200 + 5*50},
		"salted trucks": {20_000, 0, 100 + 200 + 5*50}, "depot and time": {402, 0, 0}, "salted time": {16, 0, 0}, "tenant and time": {10, 0, 0}, "time first": {1, 0, 0},
	}
	for _, c := range p.candidates {
		f, err := p.frontsOf(c)
		if err != nil {
			t.Fatal(err)
		}
		w := want[c.name]
		writes, single := 0.0, 0.0
		for _, front := range f.load.Fronts {
			writes += front.Writes
		}
		for _, r := range f.load.Reads {
			if r.Rows <= 1 {
				single += r.Rate
			}
		}
		if n := len(f.load.Fronts); math.Abs(float64(n-w.fronts)) > 10 || math.Abs(writes-80_000-w.extra) > 1 || math.Abs(single-w.single) > 1 {
			t.Errorf("%s has %d fronts, %.0f writes a second and %.0f reads of one row; want %d, %.0f, %.0f", c.name, n, writes, single, w.fronts, 80_000+w.extra, w.single)
		}
	}
}

// TestFrontsAreRanked: the model finds the documented order of the candidates, and its heatmap shows why.
func TestFrontsAreRanked(t *testing.T) {
	p := planOf(t, frontsFile)
	served := map[string]float64{}
	for _, c := range p.candidates {
		f, err := p.frontsOf(c)
		if err != nil {
			t.Fatal(err)
		}
		r, err := tablets.Simulate(t.Context(), f.load, tablets.Cluster{Nodes: 20}, tablets.Options{Warm: 20 * time.Minute, Step: 30 * time.Second, Columns: 20})
		if err != nil {
			t.Fatal(err)
		}
		served[c.name] = r.ServedShare
		var rules []heatview.Rule
		for _, finding := range heatview.Findings(f.heatmap(r)) {
			rules = append(rules, finding.Rule)
		}
		rising := slices.Contains([]string{"time first", "salted time", "tenant and time"}, c.name) // at one place, at one for each salt, and at ten of ten tenants
		if slices.Contains(rules, heatview.Sequential) != rising || slices.Contains(rules, heatview.HotEntity) {
			t.Errorf("%s: the heatmap's findings are %v", c.name, rules)
		}
	}
	for name, least := range map[string]float64{"truck first": 0.999, "with heads": 0.999, "with a rollup": 0.999, "salted trucks": 0.999} {
		if served[name] < least {
			t.Errorf("%s serves %.3f, want %.3f at least", name, served[name], least)
		}
	}
	if !(served["salted time"] < 0.9 && served["tenant and time"] < served["salted time"] && served["time first"] < served["tenant and time"]) {
		t.Errorf("the shares that are served are %v", served)
	}
}

// TestWorkloadsAreSimulated: keys that begin with the entity serve each workload that ships, and those that begin with
// the time do not.
func TestWorkloadsAreSimulated(t *testing.T) {
	if !*everyWorkload {
		t.Skip("takes 10 seconds; run with -workloads")
	}
	for _, name := range Workloads() {
		text, err := Workload(name)
		if err != nil {
			t.Fatal(err)
		}
		p := planOf(t, string(text))
		for _, c := range p.candidates {
			f, err := p.frontsOf(c)
			if err != nil {
				t.Fatal(err)
			}
			r, err := tablets.Simulate(t.Context(), f.load, tablets.Cluster{Nodes: 130}, tablets.Options{Warm: 20 * time.Minute})
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%s, %s: serves %.3f; hottest node %.2f of %.2f; needs %+v", name, c.name, r.ServedShare, r.HottestNode.CPU, r.HottestNode.Asked, r.Need)
			if first := strings.HasPrefix(c.key, "tenant#entity") || strings.HasPrefix(c.key, "tenant#user"); first != (r.ServedShare > 0.99) {
				t.Errorf("%s: %s serves %.3f", name, c.name, r.ServedShare)
			}
		}
	}
}
