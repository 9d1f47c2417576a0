package points

import (
	"fmt"
	"testing"

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
