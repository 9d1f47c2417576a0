package dataset

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/internal/store/catalog"
)

// entryColdAfter returns the ages from which data may be cold, for the catalogue.
func (d *Dataset) entryColdAfter() (ages map[string]string) {
	for _, c := range d.allClasses() {
		if c.ColdAfter > 0 {
			if ages == nil {
				ages = map[string]string{}
			}
			ages[c.Name] = catalog.ColdText(c.ColdAfter)
		}
	}
	return ages
}

// larger returns the age from which data may be cold if it must satisfy both; 0 means never.
func larger(a, b time.Duration) time.Duration {
	if a == 0 || b == 0 {
		return 0
	}
	return max(a, b)
}

// Tier is the tiered storage that the classes of a table ask for.
type Tier struct {
	// After is the age from which the table's cells are cold; 0 means none.
	After time.Duration
	// Wanted are the classes that allow cold data, Cold those of them that have data older than After, and Against those
	// that keep After at 0, each as text in order.
	Wanted, Cold, Against []string
}

// TierOf returns the tiered storage of a table with these datasets. A table has one age for all cells. It is the largest
// age from which all classes allow cells to be cold; a class without data of an age allows it. There is none if no class
// that allows cold data has data of that age.
func TierOf(entries []catalog.Dataset) (Tier, error) {
	type life struct {
		cold, age time.Duration
		bounded   bool
		datasets  []string
	}
	classes := map[string]*life{}
	for i := range entries {
		e := &entries[i]
		for _, c := range e.AllClasses() {
			policy, err := gc.Parse(c.Policy)
			if err != nil {
				return Tier{}, fmt.Errorf("dataset %s: retention class %s: %w", e.Name, c.Name, err)
			}
			age, bounded, err := policy.PointAge()
			if err != nil {
				return Tier{}, fmt.Errorf("dataset %s: retention class %s: %w", e.Name, c.Name, err)
			}
			cold, err := e.ColdAge(c.Name)
			if err != nil {
				return Tier{}, err
			}
			l := classes[c.Name]
			if l == nil {
				l = &life{cold: cold, age: age, bounded: bounded}
				classes[c.Name] = l
			}
			l.cold = larger(l.cold, cold)
			l.bounded = l.bounded && bounded
			l.age = max(l.age, age)
			l.datasets = append(l.datasets, e.Name)
		}
	}
	var t Tier
	longest, forEver := time.Duration(0), false // of the classes that allow cold data
	names := slices.Sorted(maps.Keys(classes))
	text := func(name string) string { return name + " of " + joined(classes[name].datasets) }
	for _, name := range names {
		if l := classes[name]; l.cold > 0 && (!l.bounded || l.cold < l.age) {
			t.Wanted = append(t.Wanted, text(name))
			t.After = max(t.After, l.cold)
			longest, forEver = max(longest, l.age), forEver || !l.bounded
		} else {
			l.cold = 0
		}
	}
	if len(t.Wanted) == 0 {
		return t, nil
	}
	for _, name := range names {
		switch l := classes[name]; {
		case l.cold > 0:
		case !l.bounded || !forEver && l.age >= longest:
			t.Against = append(t.Against, text(name))
		default:
			t.After = max(t.After, l.age)
		}
	}
	if len(t.Against) > 0 {
		t.After = 0
		return t, nil
	}
	for _, name := range names {
		if l := classes[name]; l.cold > 0 && (!l.bounded || l.age > t.After) {
			t.Cold = append(t.Cold, text(name))
		}
	}
	return t, nil
}

// joined lists a few names.
func joined(names []string) string {
	names = slices.Compact(slices.Sorted(slices.Values(names)))
	switch n := len(names); {
	case n > 2:
		return fmt.Sprintf("%s and %d other datasets", names[0], n-1)
	case n == 2:
		return names[0] + " and " + names[1]
	}
	return cmp.Or(names...)
}
