package tsdb

import (
	"fmt"
	"strconv"

	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/internal/inside"
	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/store/catalog"
	"github.com/tidemark-go/tidemark/internal/store/dataset"
)

// Rollup is a *rollup.Rollup[T] of any T, for SchemaOptions.Rollups. Define refuses other types.
type Rollup interface {
	// Name returns the rollup's name.
	Name() string
}

// describedRollups returns the catalogue entries of a schema's rollups.
func describedRollups(rollups []Rollup) ([]catalog.Rollup, error) {
	var out []catalog.Rollup
	for i, r := range rollups {
		what, e := "nil", catalog.Rollup{}
		if r != nil {
			what = "zero"
			ok := false
			if inside.Describe != nil {
				e, ok = inside.Describe(r)
			}
			if !ok {
				what = fmt.Sprintf("of type %T", r)
			}
		}
		if e.Name == "" {
			return nil, invalid.New(ErrInvalid, "rollup "+strconv.Itoa(i), what, "a rollup from rollup.Define")
		}
		out = append(out, e)
	}
	return out, nil
}

// checkSources refuses derived rollups that cannot be computed from their source.
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
