package tsdb

import (
	"fmt"

	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/internal/catalog"
	"github.com/tidemark-go/tidemark/internal/inside"
	"github.com/tidemark-go/tidemark/internal/invalid"
)

// follower is a rollup that knows its buckets. Only a definition does: the catalogue has them as text.
type follower interface {
	// Follows refuses a source, nil for the points, whose buckets do not fill those of the rollup, or of which one of the
	// policies that it is kept by removes what a bucket is computed from before that is closed.
	Follows(k inside.Key, from Rollup, kept []gc.Policy) error
}

// checkSources refuses rollups that cannot be computed from what they come from.
func (d *dataset) checkSources(listed []Rollup) error {
	for i := range d.rollups {
		r, ok := listed[i].(follower)
		if !ok || d.rollups[i].Kind != catalog.Derived {
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
		if err := r.Follows(inside.Key{}, from, kept); err != nil {
			return fmt.Errorf("rollup %s: %w", invalid.Quote(d.rollups[i].Name), err)
		}
	}
	return nil
}
