package lab

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/internal/proof/testkit"
)

// TestDatasetsShareAPlace: where nothing before the time tells datasets apart, their rows arrive at one place.
func TestDatasetsShareAPlace(t *testing.T) {
	p := planOf(t, `
tenants: {count: 10}
datasets:
  - {name: a, fields: [site(10), device], entities: 900, every: 100ms, bytes: 80, bursts: {every: 10m, lasts: 1m, times: 3}}
  - {name: b, fields: [site(10), device], entities: 100, every: 100ms, bytes: 880}
queries:
  - {kind: range, last: 10s, dataset: b, rate: 1/s}
  - {kind: latest, dataset: b, rate: 1/s}
candidates:
  - {name: time, key: time#dataset#entity}
  - {name: salts, key: salt(8)#time#dataset#entity}
  - {name: tenants, key: tenant#time#dataset#entity}
  - {name: sites, key: site#time#dataset#device}
  - {name: apart, key: dataset#time#entity}
`)
	loads, err := p.fronts(p.candidates)
	if err != nil {
		t.Fatal(err)
	}
	// Sites have the same texts in both datasets only if the numbers have the same width: here they have not.
	for i, fronts := range []int{1, 8, 10, 100, 2} {
		f := loads[i]
		writes, bytes := 0.0, 0.0
		for _, front := range f.load.Fronts {
			writes += front.Writes
			bytes += front.Writes * front.RowBytes
		}
		if n := len(f.load.Fronts); n != fronts || math.Abs(writes-10_000) > 1 || math.Abs(bytes-(9000*200+1000*1000)) > 1000 {
			t.Errorf("%s has %d fronts with %.0f writes of %.0f bytes a second, want %d with 10000 of 2800000", p.candidates[i].name, n, writes, bytes, fronts)
		}
	}
	time := loads[0]
	if scan, newest := time.load.Reads[0], time.load.Reads[1]; math.Abs(scan.Rows-100_000) > 1 || math.Abs(newest.Rows-500) > 1 || math.Abs(scan.RowBytes-280) > 0.1 {
		t.Errorf("a range looks at %.0f rows of %.0f bytes and the newest point at %.0f, want those of both datasets: 100000, 280, 500", scan.Rows, scan.RowBytes, newest.Rows)
	}
	curve := time.load.Curves[time.load.Fronts[0].Curve-1]
	if burst, usual := curve(0), curve(5*60e9); math.Abs(burst-2.8) > 1e-9 || usual != 1 {
		t.Errorf("the rate is %g and %g times the average, want 2.8 and 1", burst, usual)
	}
	rnd, count := rand.New(rand.NewPCG(1, 1)), map[string]int{}
	for range 2000 {
		parts := strings.Split(string(time.key(0, 0, rnd)), "#")
		count[parts[1]]++
		if wide := len(parts[3]) == len("device-000"); wide != (parts[1] == "a") { // there are 900 of a, and 100 of b
			t.Fatalf("the key is %q", parts)
		}
	}
	if count["b"] < 120 || count["b"] > 280 {
		t.Errorf("the heatmap has keys of %v, want a tenth of b", count)
	}
}

// TestCommonOrders: candidates whose keys are the same up to the time have one order in memory.
func TestCommonOrders(t *testing.T) {
	p := planOf(t, frontsFile)
	loads, err := p.fronts(p.candidates)
	if err != nil {
		t.Fatal(err)
	}
	first := loads[0].ranges[0].Order
	for i, want := range []bool{true, true, true, false} {
		for _, r := range loads[i].ranges {
			if (r.Order == first) != want {
				t.Errorf("the %s rows of %s have the order of the first candidate: %v, want %v", r.kind, p.candidates[i].name, !want, want)
			}
		}
	}
}

// TestMemory: the loads of twelve candidates take little more than what their keys differ in. With TIDEMARK_LONG there
// are as many entities as the model takes.
func TestMemory(t *testing.T) {
	testkit.Plain(t)
	entities := 500_000
	if os.Getenv("TIDEMARK_LONG") != "" {
		entities = 20_000_000
	}
	text := fmt.Sprintf("tenants: {count: 100}\ndatasets: [{name: d, fields: [site(10), device], entities: %d, every: 1m}]\ncandidates:\n", entities)
	for i := range 4 { // these have the order of the entities
		text += fmt.Sprintf("  - {key: tenant#entity#~time, heads: %d, rollup: 1h, name: heads %d}\n", i, i)
	}
	for i := range 8 { // each of these has its own
		text += fmt.Sprintf("  - {key: tenant#salt(%d)#entity#~time, heads: 1, rollup: 1h}\n", i+2)
	}
	p := planOf(t, text)
	heap := func() float64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return float64(m.HeapAlloc)
	}
	before, began := heap(), time.Now()
	loads, err := p.fronts(p.candidates)
	if err != nil {
		t.Fatal(err)
	}
	took := heap() - before
	t.Logf("%d entities and %d candidates take %.0f MB, in %v", entities, len(loads), took/1e6, time.Since(began))
	fronts := 0.0
	for _, f := range loads {
		fronts += float64(len(f.load.Fronts))
	}
	if most := 8*4*float64(entities) + 2.5*40*fronts + 20e6; took > most {
		t.Errorf("the loads take %.0f MB, want at most %.0f MB: 4 bytes for each entity of 8 orders, and the fronts", took/1e6, most/1e6)
	}
	runtime.KeepAlive(loads)
}

// TestAsked: a query for more entities than tenants have is named so, and the model asks for as many as there are.
func TestAsked(t *testing.T) {
	p := planOf(t, `
tenants: {count: 3, largest: 60%}
datasets: [{name: d, fields: [a], entities: 100, every: 1m}]
queries: [{kind: latest_many, entities: 50, rate: 10/s}]
candidates: [{name: x, key: tenant#a#~time}]
`)
	l := p.scaled(1)
	if got, want := l.asked(p.queries[0]), 0.6*50+0.4*20; math.Abs(got-want) > 1e-9 {
		t.Errorf("a query asks for %g entities, want %g", got, want)
	}
	f, err := p.frontsOf(p.candidates[0])
	if err != nil {
		t.Fatal(err)
	}
	if got := f.load.Reads[0].Rate; math.Abs(got-380) > 1e-6 {
		t.Errorf("the model reads %g rows a second, want 380", got)
	}
	if got := l.label(p.queries[0]); got != "latest of up to 50 in d" {
		t.Errorf("the query is named %q", got)
	}
	p.queries[0].entities = 20
	if got := l.label(p.queries[0]); got != "latest of 20 in d" {
		t.Errorf("a query that all tenants have the entities for is named %q", got)
	}
}
