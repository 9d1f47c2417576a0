package lab

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// heaviest is a driver that notes the most bytes of payloads in a request.
type heaviest struct {
	mu    sync.Mutex
	most  int
	ops   int
	sizes []int // of payloads, by dataset
}

func (d *heaviest) write(_ context.Context, ops []op) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := 0
	for _, o := range ops {
		n += d.sizes[o.of]
	}
	d.most, d.ops = max(d.most, n), d.ops+len(ops)
	return 0, nil
}
func (d *heaviest) query(context.Context, op) error { return nil }
func (d *heaviest) close(context.Context) error     { return nil }

// TestRequestsAreBounded: payloads of up to 1 MiB are written a few at a time. 500 of them in each of 16 requests would
// take 8 GB.
func TestRequestsAreBounded(t *testing.T) {
	p := planOf(t, `
heavy: 1m
datasets:
  - {name: small, fields: [a], entities: 1000, every: 1m, bytes: 10}
  - {name: large, fields: [a], entities: 1000, every: 1m, bytes: 1 MB}
candidates: [{key: dataset#a#time}]
`)
	d := &heaviest{sizes: []int{10, 1_000_000}}
	r := &runner{o: RunOptions{Concurrency: 2}, c: p.candidates[0], l: p.scaled(1), driver: d}
	r.execute(t.Context(), "heavy load", -p.heavy, 0, r.l.heavyOps())
	if d.most > 8<<20 || d.ops < 1990 {
		t.Errorf("a request has payloads of %d bytes, of %d points in all; want up to 8 MiB, and about 2000 points", d.most, d.ops)
	}
}

// TestLatestOfDistinctEntities: a query for n entities asks for n different ones, because the same one twice is read
// once by some candidates.
func TestLatestOfDistinctEntities(t *testing.T) {
	p := planOf(t, `
datasets: [{name: d, fields: [a], entities: 60, every: 1m}]
queries: [{kind: latest_many, entities: 50, rate: 1/s}]
candidates: [{key: a#time}]
`)
	for scale, want := range map[float64]int{1: 50, 0.5: 30} { // there are 30 entities then
		l := p.scaled(scale)
		for seed := range uint64(20) {
			got := l.many(op{query: p.queries[0], seed: seed})
			slices.Sort(got)
			if distinct := slices.Compact(slices.Clone(got)); len(distinct) != want || len(got) != want || got[0] < 0 || got[want-1] >= l.datasets[0].n {
				t.Fatalf("scale %v: asks for %v, %d different ones, want %d", scale, got, len(distinct), want)
			}
		}
	}
}

// TestRemoveWithoutTable: a run that fails before it has made its table does not say that the table still exists.
func TestRemoveWithoutTable(t *testing.T) {
	b, err := openEngine(t.Context(), t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer b.close()
	if err := b.remove(t.Context(), scratchTable(time.Now(), time.Minute)); err != nil {
		t.Errorf("removing a table that was never made: %v, want no error", err)
	}
}

// TestUnmetIfNotAsked: an expectation of queries is not met by a run that asked none.
func TestUnmetIfNotAsked(t *testing.T) {
	for _, tc := range []struct {
		expect string
		want   int
	}{{"{p99: 1s}", 1}, {"{rows_per_query: 10}", 1}, {"{hottest_cpu: 60%}", 0}} {
		p := planOf(t, fmt.Sprintf(`
datasets: [{name: d, fields: [a], entities: 60, every: 1m}]
queries: [{kind: latest, rate: 1/h}]
candidates: [{key: a#time}]
expect: %s
`, tc.expect))
		r := p.report(p.candidates)
		r.Candidates[0].Measured = &Measured{Points: 1, Queries: []QueryReport{{Query: p.queries[0].String()}}}
		if got := r.Unmet(); len(got) != tc.want || tc.want > 0 && !strings.Contains(got[0], "latest of d was not asked") {
			t.Errorf("%s: unmet is %q, want %d that say that it was not asked", tc.expect, got, tc.want)
		}
		r.Candidates[0].Measured = &Measured{}
		if got := r.Unmet(); (len(got) > 0) != (p.expect.p99 > 0) {
			t.Errorf("%s: unmet without points is %q, want it for a p99", tc.expect, got)
		}
	}
}

// TestBestOfAll: the best candidate of a part of them need not be the best one.
func TestBestOfAll(t *testing.T) {
	p := planOf(t, `
datasets: [{name: d, fields: [a], entities: 60, every: 1m}]
candidates: [{name: x, key: a#time}, {name: y, key: time#a}]
expect: {best: true}
`)
	for n, want := range map[int]int{1: 1, 2: 0} {
		r := p.report(p.candidates[:n])
		r.Candidates[0].Simulated, r.Ranking = new(Simulated), []Rank{{Candidate: "x"}, {Candidate: "y"}}[:n]
		if got := r.Unmet(); len(got) != want {
			t.Errorf("with %d of 2 candidates, unmet is %q, want %d", n, got, want)
		}
	}
}

// TestUnmetWithoutTheCandidate: an expectation of a candidate that was left out is not met. A file that expects nothing
// has none.
func TestUnmetWithoutTheCandidate(t *testing.T) {
	for expect, want := range map[string]int{"{candidate: x}": 0, "{candidate: x, best: true}": 1, "{candidate: y, p99: 1s}": 0} {
		p := planOf(t, `
datasets: [{name: d, fields: [a], entities: 60, every: 1m}]
candidates: [{name: x, key: a#time}, {name: y, key: time#a}]
expect: `+expect)
		r := p.report(p.candidates[1:])
		r.Candidates[0].Measured = &Measured{Points: 1, Failed: 7, FirstError: "lost"}
		if got := r.Unmet(); len(got) != want || want > 0 && !strings.Contains(got[0], "nothing is known of the candidate in use, x") {
			t.Errorf("%s: unmet is %q, want %d", expect, got, want)
		}
		if got := r.Failures(); len(got) != 1 || got[0] != "7 points of y were not stored; the first error is: lost" {
			t.Errorf("the failures are %q", got)
		}
	}
}

// TestTooManyToSimulate: more entities than the model takes are refused before memory is taken for each.
func TestTooManyToSimulate(t *testing.T) {
	p := planOf(t, `
datasets:
  - {name: d, fields: [a], entities: 10M, every: 1h}
  - {name: e, fields: [a], entities: 11M, every: 1h}
candidates: [{key: dataset#tenant#salt(16)#a#time}]
`)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := p.frontsOf(p.candidates[0])
	runtime.ReadMemStats(&after)
	if !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), "entities is 21000000 in all datasets") {
		t.Errorf("got %v, want ErrInvalid with the number of entities", err)
	}
	if took := after.TotalAlloc - before.TotalAlloc; took > 10<<20 {
		t.Errorf("it allocated %d bytes before, want less than 10 MiB", took)
	}
}
