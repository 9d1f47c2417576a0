package tsdb

import (
	"fmt"

	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/internal/inside"
	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/store/catalog"
)

// checkSources refuses rollups that cannot be computed from what they come from.
func checkSources(d *dataset, listed []Rollup) error {
	for i := range d.rollups {
		if d.rollups[i].Kind != catalog.Derived {
			continue
		}
		from, classes := Rollup(nil), d.classes
		for j := range i {
			if u := &d.rollups[j]; u.Name == d.rollups[i].From {
				from, classes = listed[j], d.keptRollups(u)
			}
		}
		kept := make([]gc.Policy, len(classes))
		for i, c := range classes {
			kept[i] = c.Policy
		}
		if err := inside.Follows(listed[i], from, kept); err != nil {
			return fmt.Errorf("rollup %s: %w", invalid.Quote(d.rollups[i].Name), err)
		}
	}
	return nil
}

// keptRollups returns the classes by which a rollup of some tenant may expire: its own, and those by which tenants' rollups do.
func (d *dataset) keptRollups(u *rolled) []class {
	kept := []class{u.class}
	for i := range d.classes {
		if age := d.classes[i].rollupAge; age > 0 {
			kept = append(kept, class{Class: gc.Class{Name: d.classes[i].Name, Policy: gc.MaxAge(age)}})
		}
	}
	return kept
}
