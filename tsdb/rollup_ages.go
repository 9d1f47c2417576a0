package tsdb

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/internal/invalid"
)

// withRollupAges sets how long rollups of tenants in a class are kept, on a dataset that has its classes and rollups. It checks
// the ages: they may come from a file or a table.
func (d *dataset) withRollupAges(ages map[string]time.Duration) error {
	if len(ages) > 0 && len(d.rollups) == 0 {
		return invalid.New(ErrInvalid, "RollupAges", fmt.Sprint(len(ages)), "none where there are no Rollups")
	}
	for _, name := range slices.Sorted(maps.Keys(ages)) {
		field, age := "RollupAges of class "+invalid.Quote(name), ages[name]
		i := slices.IndexFunc(d.classes, func(c class) bool { return c.Name == name })
		if i < 0 || i > 0 && !d.classes[i].choice {
			return invalid.New(ErrInvalid, field, age.String(), "a class in which points are written: Retention, or one of Classes")
		}
		if err := gc.MaxAge(age).Validate(); err != nil {
			return invalid.New(ErrInvalid, field, age.String(), "a positive whole number of seconds")
		}
		c := &d.classes[i]
		switch {
		case !c.bounded:
			return invalid.New(ErrInvalid, field, age.String(), "none, as the class keeps points for ever")
		case age < c.age:
			return invalid.New(ErrInvalid, field, age.String(), "at least as long as the class keeps points, "+c.age.String())
		}
		c.rollupAge = age
	}
	return nil
}

// entryRollupAges returns what the catalogue is to know of the ages.
func (d *dataset) entryRollupAges() (ages map[string]string) {
	for i := range d.classes {
		if c := &d.classes[i]; c.rollupAge > 0 {
			if ages == nil {
				ages = map[string]string{}
			}
			ages[c.Name] = gc.MaxAge(c.rollupAge).String()
		}
	}
	return ages
}

// shortestRollupAge is the shortest age that a class sets for rollups, 0 for none.
func (d *dataset) shortestRollupAge() (shortest time.Duration) {
	for i := range d.classes {
		if age := d.classes[i].rollupAge; age > 0 && (shortest == 0 || age < shortest) {
			shortest = age
		}
	}
	return shortest
}

// rollupAge returns how long the tenant's rollups are kept at most by the class that its points are written in now; 0 for as
// long as their own classes say.
func (r *Repository[T]) rollupAge(ctx context.Context) (time.Duration, error) {
	if r.schema.d.shortestRollupAge() == 0 {
		return 0, nil
	}
	d, err := r.writing(ctx)
	if err != nil {
		return 0, err
	}
	return d.classes[0].rollupAge, nil
}
