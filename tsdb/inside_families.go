package tsdb

import (
	"fmt"
	"maps"
	"slices"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/internal/inside"
	"github.com/tidemark-go/tidemark/internal/store/catalog"
)

// describedFamilies returns the families that datasets need of which there is no schema, and what each is for.
func describedFamilies(entries []catalog.Dataset) ([]inside.Family, error) {
	shapes := make([]*dataset, len(entries))
	for i, e := range entries {
		var err error
		if shapes[i], err = described(e); err != nil {
			return nil, err
		}
	}
	if err := checkTogether(shapes); err != nil {
		return nil, err
	}
	all := map[string]*inside.Family{}
	for name, f := range families(shapes) {
		policy, err := gc.FromBigtable(f.GCPolicy)
		if err != nil {
			return nil, fmt.Errorf("family %s: %w", name, err)
		}
		all[name] = &inside.Family{Name: name, Policy: policy, Type: f.ValueType, Differs: func(have bigtable.Type) string {
			return compareType(name, f.ValueType, have)
		}}
	}
	all[catalog.Family].Versions = 1
	for _, d := range shapes {
		d.uses(all)
	}
	out := make([]inside.Family, 0, len(all))
	for _, name := range slices.Sorted(maps.Keys(all)) {
		out = append(out, *all[name])
	}
	return out, nil
}

// uses notes what the dataset keeps in each of its families.
func (d *dataset) uses(families map[string]*inside.Family) {
	use := func(name, what string, class gc.Class, versions int) {
		f := families[name]
		f.Class, f.Versions = class, versions
		f.Uses = append(f.Uses, inside.Use{Dataset: d.name, What: what})
	}
	for i, c := range d.classes {
		if !d.head.Only {
			use(c.Name, "points", c.Class, 0)
		}
		if d.head.Points > 0 {
			use(d.headClasses[i].Name, "heads", c.Class, d.head.Points)
		}
	}
	for i := range d.rollups {
		u := &d.rollups[i]
		bucket := func(name, what string, versions int) {
			use(name, what+" of rollup "+u.Name, u.class.Class, versions)
			f := families[name]
			f.Uses[len(f.Uses)-1].Rollup = true
		}
		bucket(u.families.Sum, "sums", 0)
		bucket(u.families.Min, "minima", 0)
		bucket(u.families.Max, "maxima", 0)
		bucket(u.families.Control, "notes", 1)
		if u.Kind == catalog.Derived {
			use(inside.MarkFamily, "marks of rollup "+u.Name, gc.Class{}, 1)
		}
	}
}
