package lab

import (
	"math"
	"slices"
	"testing"
	"time"
)

func planOf(t *testing.T, text string) *Plan {
	t.Helper()
	p, err := Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestSameSeedSameLoad: the operations of a file are the same each time, and others with another seed.
func TestSameSeedSameLoad(t *testing.T) {
	for _, name := range Workloads() {
		text, err := Workload(name)
		if err != nil {
			t.Fatal(err)
		}
		ops := func(seed uint64) (all []op) {
			p := planOf(t, string(text))
			p.seed = seed
			l := p.scaled(0.0001)
			all = slices.AppendSeq(all, l.heavyOps())
			return slices.AppendSeq(all, l.hourOps())
		}
		one, again, other := ops(1), ops(1), ops(2)
		same := func(a, b op) bool {
			return a.of == b.of && a.at == b.at && a.entity == b.entity && a.time.Equal(b.time) && a.seed == b.seed && (a.query == nil) == (b.query == nil)
		}
		if !slices.EqualFunc(one, again, same) || len(one) < 100 {
			t.Errorf("%s: %d and %d operations with the same seed, want the same ones", name, len(one), len(again))
		}
		if slices.EqualFunc(one, other, same) {
			t.Errorf("%s: the operations do not depend on the seed", name)
		}
		if !slices.IsSortedFunc(one, func(a, b op) int { return int(a.at - b.at) }) {
			t.Errorf("%s: the operations are not in the order of time", name)
		}
	}
}

// TestLoadIsWhatTheFileSays: rates, tenants, skew, bursts and late points have the stated sizes.
func TestLoadIsWhatTheFileSays(t *testing.T) {
	p := planOf(t, `
duration: 1h
heavy: 1m
starts: "18:00"
tenants: {count: 10, largest: 40%}
datasets:
  - {name: a, fields: [site(10), device], entities: 1000, every: 10s, late: {share: 10%, up_to: 1m}}
  - {name: b, fields: [user], entities: 1000, every: 1m, skew: 1, bursts: {every: 10m, lasts: 1m, times: 4}}
queries:
  - {kind: latest, dataset: a, rate: 2/s}
candidates:
  - {key: tenant#entity#~time}
`)
	l := p.scaled(1)
	var points [2]int
	var heavy, queries, late, largest, burst int
	byRank := map[int]int{}
	for o := range l.heavyOps() {
		if o.at >= 0 || o.query != nil {
			t.Fatalf("the heavy load has %+v", o)
		}
		heavy++
	}
	for o := range l.hourOps() {
		d := l.datasets[o.of]
		switch {
		case o.query != nil:
			queries++
			continue
		case o.of == 0:
			if o.time.Before(epoch.Add(l.starts + o.at)) {
				late++
			}
			if d.tenant(o.entity) == 0 {
				largest++
			}
		default:
			byRank[o.entity]++
			if o.at%(10*time.Minute) < time.Minute {
				burst++
			}
		}
		points[o.of]++
	}
	about := func(what string, got, want float64) {
		t.Helper()
		if math.Abs(got-want) > want*0.05+1 {
			t.Errorf("%s: %g, want about %g", what, got, want)
		}
	}
	about("points of a", float64(points[0]), 360_000)
	about("points of b", float64(points[1]), 60_000*(0.9+0.1*4))
	about("heavy points", float64(heavy), 100*60+1000./60*4*60)
	about("queries", float64(queries), 7200)
	about("late points", float64(late), 36_000)
	about("points of the largest tenant", float64(largest), 0.4*360_000)
	about("points in bursts", float64(burst), 60_000*0.1*4)
	about("points of the busiest entity", float64(byRank[l.datasets[1].at(0)]), float64(points[1])*weight(0, 1000, 1))
	want, _ := l.expected()
	about("expected points", want, float64(points[0]+points[1]+heavy))
	sum := 0.0
	for r := range 1000 {
		sum += weight(r, 1000, 0.7)
	}
	if math.Abs(sum-1) > 1e-9 {
		t.Errorf("the shares of all entities are %g together, want 1", sum)
	}
}

// TestLayoutsAreComplete: each entity has a tenant, the tenants follow one another, and the ranges below a prefix are
// those of its entities.
func TestEntities(t *testing.T) {
	p := planOf(t, "tenants: {count: 7, largest: 50%}\ndatasets: [{name: a, fields: [site(10), device], entities: 1003, every: 1s}]\ncandidates: [{key: time#entity}]")
	for _, scale := range []float64{1, 0.1, 0.005} {
		l := p.scaled(scale)
		d := l.datasets[0]
		seen := map[int]bool{}
		for turn := range d.n {
			seen[d.at(turn)] = true
		}
		if len(seen) != d.n {
			t.Errorf("scale %g: %d of %d entities take turns", scale, len(seen), d.n)
		}
		for e := range d.n {
			from, to := d.under(e, 1)
			if e < from || e >= to || d.tenant(from) != d.tenant(e) || d.tenant(to-1) != d.tenant(e) || d.part(from, 0) != d.part(e, 0) {
				t.Errorf("scale %g: entity %d is under %d to %d", scale, e, from, to)
			}
		}
	}
}

// weight returns the share of an entity's writes, by rank from 0. Ranks follow a power law.
func weight(rank, n int, skew float64) float64 {
	if skew == 0 {
		return 1 / float64(n)
	}
	return (integral(float64(rank+2), skew) - integral(float64(rank+1), skew)) / integral(float64(n+1), skew)
}
