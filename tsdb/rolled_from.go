package tsdb

import (
	"fmt"

	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/internal/catalog"
	"github.com/tidemark-go/tidemark/internal/inside"
	"github.com/tidemark-go/tidemark/internal/invalid"
)

// checkSources refuses rollups that cannot be computed from what they come from.
func (d *dataset) checkSources(listed []Rollup) error {
	for i := range d.rollups {
		if d.rollups[i].Kind != catalog.Derived {
			continue
		}
		from, classes := Rollup(nil), d.classes
		for j := range i {
			if u := &d.rollups[j]; u.Name == d.rollups[i].From {
				from, classes = listed[j], []class{u.class}
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
