package points

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-go/tidemark/internal/store/rowkey"
	"github.com/tidemark-go/tidemark/tenant"
)

func found(n int, newest int64) (paths []string, all []seen) {
	for i := range n {
		paths, all = append(paths, fmt.Sprint("d-", i)), append(all, seen{read: true, newest: newest})
	}
	return paths, all
}

func known(from []int64) (n int) {
	for _, t := range from {
		if t >= 0 {
			n++
		}
	}
	return n
}

// TestRecentIsBounded checks that a store remembers a bounded number of entities, and a part of it for each tenant,
// whatever tenants read.
func TestRecentIsBounded(t *testing.T) {
	var r Recent
	paths, all := found(3*mostEntities, 1)
	acme := r.of(tenant.MustParse("acme"), "readings")
	acme.learn(paths, all, 2)
	if n := acme.entities.len(); n > mostEntities || n < mostEntities/2 {
		t.Errorf("got %d entities of one tenant, want %d to %d", n, mostEntities/2, mostEntities)
	}
	few, seenFew := found(40, 7)
	small := tenant.MustParse("small")
	r.of(small, "readings").learn(few, seenFew, 8)
	total := 0
	for i := range 200 {
		c := r.of(tenant.MustParse(fmt.Sprint("t", i)), "readings")
		c.learn(paths, all, 2)
		total += c.entities.len()
	}
	if total > 3*recentEntities {
		t.Errorf("got %d entities of 200 tenants", total)
	}
	if n := known(r.of(small, "readings").plan(few, 8)); n != len(few) {
		t.Errorf("got %d of %d entities of a small tenant after others read many", n, len(few))
	}
	for i := range 3 * recentDatasets {
		r.of(tenant.MustParse(fmt.Sprint("t", i)), "readings")
	}
	if n := r.datasets.len(); n > recentDatasets {
		t.Errorf("got %d datasets", n)
	}
}

// TestGenerations checks that a map of two generations holds the keys that were set last, each once.
func TestGenerations(t *testing.T) {
	var g generations[int, int]
	const bound = 8
	for key := range 100 {
		g.set(key, key, bound)
		g.set(key-1, -key, bound)
		for back := range min(bound/2, key) {
			want := key
			if back > 0 {
				want = back - 1 - key // what the next key has set
			}
			if v, ok := g.get(key - back); !ok || v != want {
				t.Fatalf("after key %d: key %d has %d, %v; want %d", key, key-back, v, ok, want)
			}
		}
		for k := range g.fresh {
			if _, both := g.old[k]; both {
				t.Fatalf("after key %d: key %d is held twice", key, k)
			}
		}
		if n := g.len(); n > bound {
			t.Fatalf("after key %d: %d keys, want at most %d", key, n, bound)
		}
	}
}

// TestRecentOfOthers checks that a tenant's reads, and reads in another dataset, have no effect on entities of the same
// name elsewhere.
func TestRecentOfOthers(t *testing.T) {
	var r Recent
	paths, all := found(10, 1)
	acme := tenant.MustParse("acme")
	r.of(acme, "readings").learn(paths, all, 2)
	for _, c := range []*recency{r.of(tenant.MustParse("acme2"), "readings"), r.of(acme, "readings2")} {
		if n := known(c.plan(paths, 3)); n != 0 {
			t.Errorf("got %d entities that were never read, want 0", n)
		}
	}
}

// TestSightings checks where an entity's next range begins; -1 means that the entity is read alone.
func TestSightings(t *testing.T) {
	times := func(n int, f seen) []seen {
		out := make([]seen, n)
		for i := range out {
			out[i] = f
		}
		return out
	}
	at := seen{read: true, newest: 1000}
	crowded := seen{read: true, newest: 1000, crowd: true, step: 10}
	missed := seen{read: true, newest: 500, missed: true}
	for name, tt := range map[string]struct {
		calls []seen
		want  int64 // at time 1200; each call was at 1100
	}{
		"not known":                                 {nil, -1},
		"not read":                                  {[]seen{{}}, -1},
		"known":                                     {[]seen{at}, 1000},
		"without points":                            {[]seen{{read: true}}, 0},
		"crowded":                                   {[]seen{at, crowded}, 1200 - 100 - 30},
		"crowded at one time":                       {[]seen{at, {read: true, newest: 1000, crowd: true}}, 1200 - 100 - 3},
		"not reached because of a crowd":            {[]seen{at, {read: true, newest: 900, full: true, step: 10}}, 1200 - 200 - 30},
		"not reached by a full request":             {[]seen{at, {read: true, newest: 900, full: true}}, -1},
		"16 calls after a full request":             {append([]seen{at, {read: true, newest: 900, full: true}}, times(aloneOnce, at)...), 1000},
		"crowded, then no point in the range":       {[]seen{crowded, missed}, 500},
		"often crowded, then no point in the range": {[]seen{crowded, missed, crowded, missed, crowded, missed}, -1},
		"1000 calls after that":                     {append([]seen{crowded, missed, crowded, missed, crowded, missed}, times(aloneFor, at)...), 1000},
		"crowded by other programs":                 {[]seen{at, {read: true, newest: 900, missed: true, crowd: true}}, -1},
		"the newest point was deleted":              {[]seen{at, missed}, 500},
		"the newest point was often deleted":        {append([]seen{at}, times(10, missed)...), 500},
		"the newest point is in the future":         {[]seen{{read: true, newest: 5000}}, 5000},
	} {
		c := recency{bound: 100}
		for _, f := range tt.calls {
			c.learn([]string{"d"}, []seen{f}, 1100)
		}
		if got := c.plan([]string{"d"}, 1200)[0]; got != tt.want {
			t.Errorf("%s: got %d, want %d", name, got, tt.want)
		}
	}
}

// TestOutlineIsBounded checks that an outline holds a bounded number of entities and bytes, in the order of their keys,
// however they come.
func TestOutlineIsBounded(t *testing.T) {
	var r Recent
	o := &r.of(tenant.MustParse("acme"), "readings").outline
	entities := func(from, to int, name string) (all []rowkey.Known) {
		for i := from; i < to; i++ {
			all = append(all, rowkey.Known{Prefix: fmt.Sprintf("acme#readings#%05d%s#", i, name)})
		}
		return all
	}
	rng := func(from, to int) rowkey.Range {
		return rowkey.Range{Start: fmt.Sprintf("acme#readings#%05d", from), Limit: fmt.Sprintf("acme#readings#%05d", to)}
	}
	o.Replace(rng(500, 900), entities(500, 900, ""))
	o.Replace(rng(100, 600), entities(200, 300, ""))
	o.Replace(rng(0, 50), entities(0, 50, ""))
	got, more := o.First(rng(0, 1000), 1000)
	if want := slices.Concat(entities(0, 50, ""), entities(200, 300, ""), entities(600, 900, "")); more || !slices.Equal(got, want) {
		t.Errorf("%d entities, want %d", len(got), len(want))
	}
	if got, more := o.First(rng(250, 1000), 10); !more || !slices.Equal(got, entities(250, 260, "")) {
		t.Errorf("the first of a range are %v", got)
	}
	o.Replace(rng(0, 90_000), entities(0, 90_000, ""))
	if n := len(o.entities); n != mostEntities {
		t.Errorf("%d entities, want %d", n, mostEntities)
	}
	long := strings.Repeat("x", 3000)
	o.Replace(rng(0, 90_000), entities(0, 1000, long))
	if n := len(o.entities); n != outlineBytes*mostEntities/len(entities(0, 1, long)[0].Prefix) {
		t.Errorf("%d entities with long names, want %d bytes of them", n, outlineBytes*mostEntities)
	}
	if got, more := o.First(rng(0, 90_000), 1000); !more || len(got) != 82 {
		t.Errorf("%d entities with long names in a request, want what fits", len(got))
	}
}
