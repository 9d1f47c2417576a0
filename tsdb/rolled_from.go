package tsdb

import (
	"fmt"
	"time"

	"github.com/tidemark-go/tidemark/internal/catalog"
	"github.com/tidemark-go/tidemark/internal/inside"
	"github.com/tidemark-go/tidemark/internal/invalid"
)

// follower is a rollup that knows its buckets. Only a definition does: the catalogue has them as text.
type follower interface {
	// Follows refuses a source whose buckets do not fill those of the rollup, nil for the points, or that is kept for too short
	// a time to compute a bucket once it is closed; 0 is for ever.
	Follows(k inside.Key, from Rollup, kept time.Duration) error
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
		kept := time.Duration(0)
		for _, c := range classes {
			if c.bounded && (kept == 0 || c.age < kept) {
				kept = max(c.age, 1)
			}
		}
		if err := r.Follows(inside.Key{}, from, kept); err != nil {
			return fmt.Errorf("rollup %s: %w", invalid.Quote(d.rollups[i].Name), err)
		}
	}
	return nil
}
