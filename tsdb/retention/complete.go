package retention

import (
	"context"
	"time"

	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/internal/inside"
	"github.com/tidemark-go/tidemark/internal/instant"
	"github.com/tidemark-go/tidemark/internal/store/catalog"
	"github.com/tidemark-go/tidemark/internal/store/ensure"
)

// clockSkew is how far the clock of the service, which collects garbage, may be ahead of this machine's.
const clockSkew = time.Minute

// noteComplete records in the catalogue from which time on each class is complete, before any policy keeps more. Data
// that a shorter policy removed does not come back, and rollups must not be computed from the rest. It reports true
// if it changed the catalogue, which must then be read again.
//
// It counts the scan timeout in, because the shorter policy applies until the change is made.
func (a *applier) noteComplete(ctx context.Context, have actual) (again bool, err error) {
	until := a.Clock().Add(a.Whole.Timeouts().Scan + clockSkew)
	for _, d := range a.plan.Declared {
		old, ok := have.catalog.Datasets[d.Name]
		if !ok || a.noted[d.Name] {
			continue
		}
		from := map[string]int64{}
		for _, c := range d.Classes {
			longer(from, c, classOf(old.Classes, c.Name), until, have.families[c.Name])
		}
		for i := range d.Rollups {
			c := d.Rollups[i].Class
			var stored catalog.Class
			for _, o := range old.Rollups {
				if o.Class.Name == c.Name {
					stored = o.Class
				}
			}
			longer(from, c, stored, until, have.families[c.Name+catalog.SumEnding], have.families[c.Name+catalog.MinEnding], have.families[c.Name+catalog.MaxEnding])
		}
		longerRollups(from, d, old.Dataset, until)
		if len(from) > 0 {
			again = true
			written, err := catalog.WriteComplete(ctx, a.Whole, old, from)
			if err != nil {
				return false, ensure.CatalogError(a.Name, err)
			}
			if !written {
				continue
			}
		}
		if a.noted == nil {
			a.noted = map[string]bool{}
		}
		a.noted[d.Name] = true
	}
	return again, nil
}

func classOf(classes []catalog.Class, name string) catalog.Class {
	for _, c := range classes {
		if c.Name == name {
			return c
		}
	}
	return catalog.Class{}
}

// longer sets in from the time up to which the shortest current policy has collected data, if a class is to keep data
// longer than the catalogue or one of its families does.
func longer(from map[string]int64, declared, stored catalog.Class, until time.Time, families ...family) {
	next, err := gc.Parse(declared.Policy)
	if err != nil {
		return
	}
	nextCutoff, bounded, err := inside.Of(next).Cutoff(until)
	if err != nil {
		return
	}
	removed := func(before time.Time) {
		if !bounded || before.After(nextCutoff) {
			from[declared.Name] = max(from[declared.Name], before.UnixMilli())
		}
	}
	if p, err := gc.Parse(stored.Policy); err == nil && stored.Name != "" {
		if cutoff, limited, err := inside.Of(p).Cutoff(until); err == nil && limited {
			removed(cutoff)
		}
	}
	for _, f := range families {
		if f.bounded {
			removed(instant.Cutoff(until, f.age))
		}
	}
}
