package tsdb

import (
	"fmt"

	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/internal/inside"
	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/store/catalog"
	"github.com/tidemark-go/tidemark/internal/store/dataset"
)

// checkSources refuses rollups that cannot be computed from what they come from.
func checkSources(d *dataset.Dataset, listed []Rollup) error {
	for i := range d.Rollups {
		if d.Rollups[i].Kind != catalog.Derived {
			continue
		}
		from, classes := Rollup(nil), d.Classes
		for j := range i {
			if u := &d.Rollups[j]; u.Name == d.Rollups[i].From {
				from, classes = listed[j], d.KeptRollups(u)
			}
		}
		kept := make([]gc.Policy, len(classes))
		for i, c := range classes {
			kept[i] = c.Policy
		}
		if err := inside.Follows(listed[i], from, kept); err != nil {
			return fmt.Errorf("rollup %s: %w", invalid.Quote(d.Rollups[i].Name), err)
		}
	}
	return nil
}
