package dataset

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/internal/invalid"
)

// WithRollupAges sets how long rollups of tenants in a class are kept, on a dataset that has its classes and rollups. It checks
// the ages: they may come from a file or a table.
func (d *Dataset) WithRollupAges(ages map[string]time.Duration) error {
	if len(ages) > 0 && len(d.Rollups) == 0 {
		return invalid.New(ErrInvalid, "RollupAges", fmt.Sprint(len(ages)), "none where there are no Rollups")
	}
	for _, name := range slices.Sorted(maps.Keys(ages)) {
		field, age := "RollupAges of class "+invalid.Quote(name), ages[name]
		i := slices.IndexFunc(d.Classes, func(c Class) bool { return c.Name == name })
		if i < 0 || i > 0 && !d.Classes[i].Choice {
			return invalid.New(ErrInvalid, field, age.String(), "a class in which points are written: Retention, or one of Classes")
		}
		if err := gc.MaxAge(age).Validate(); err != nil {
			return invalid.New(ErrInvalid, field, age.String(), "a positive whole number of seconds")
		}
		c := &d.Classes[i]
		switch {
		case !c.Bounded:
			return invalid.New(ErrInvalid, field, age.String(), "none, as the class keeps points for ever")
		case age < c.Age:
			return invalid.New(ErrInvalid, field, age.String(), "at least as long as the class keeps points, "+c.Age.String())
		}
		c.RollupAge = age
	}
	return nil
}

// entryRollupAges returns what the catalogue is to know of the ages.
func (d *Dataset) entryRollupAges() (ages map[string]string) {
	for i := range d.Classes {
		if c := &d.Classes[i]; c.RollupAge > 0 {
			if ages == nil {
				ages = map[string]string{}
			}
			ages[c.Name] = gc.MaxAge(c.RollupAge).String()
		}
	}
	return ages
}

// ShortestRollupAge is the shortest age that a class sets for rollups, 0 for none.
func (d *Dataset) ShortestRollupAge() (shortest time.Duration) {
	for i := range d.Classes {
		if age := d.Classes[i].RollupAge; age > 0 && (shortest == 0 || age < shortest) {
			shortest = age
		}
	}
	return shortest
}
