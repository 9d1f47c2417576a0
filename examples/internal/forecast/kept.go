package forecast

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/internal/store/catalog"
	"github.com/tidemark-go/tidemark/internal/store/dataset"
)

// kept maps dataset and family to the column families of the catalogue. The empty dataset has all of them.
type kept map[string]map[string]*keeping

// keeping is a column family of a dataset.
type keeping struct {
	class    string
	versions int // the most versions that it keeps, in addition to the class's policy; 0 for all
	policy   gc.Policy
	age      time.Duration // at which the policy removes a single cell
	bounded  bool
	declared bool // by a dataset
}

// addDataset adds the families of a dataset, with their policies in the catalogue.
func (k kept) addDataset(d catalog.Dataset) error {
	k[d.Name] = map[string]*keeping{}
	for _, c := range d.Classes {
		if err := k.add(d.Name, c, c.Name, 0); err != nil {
			return err
		}
		if d.Head == nil {
			continue
		}
		if err := k.add(d.Name, c, fmt.Sprintf("%s.h%d", c.Name, d.Head.Points), d.Head.Points); err != nil {
			return err
		}
	}
	for _, r := range d.Rollups {
		for suffix, versions := range map[string]int{catalog.SumEnding: 0, catalog.MinEnding: 0, catalog.MaxEnding: 0, catalog.ControlEnding: 1} {
			if err := k.add(d.Name, r.Class, r.Class.Name+suffix, versions); err != nil {
				return err
			}
		}
		if r.Kind == catalog.Derived {
			k[d.Name][dataset.MarkFamily] = &keeping{class: dataset.MarkFamily, versions: 1, policy: gc.MaxVersions(1)}
		}
	}
	return nil
}

func (k kept) add(dataset string, c catalog.Class, name string, versions int) error {
	policy, err := gc.Parse(c.Policy)
	if err != nil {
		return fmt.Errorf("forecast: class %s of dataset %s in the catalogue: %w", c.Name, dataset, err)
	}
	f := &keeping{class: c.Name, versions: versions, declared: true}
	if f.age, f.bounded, err = policy.PointAge(); err != nil {
		return fmt.Errorf("forecast: class %s of dataset %s in the catalogue: %w", c.Name, dataset, err)
	}
	f.policy = f.under(policy)
	k[dataset][name] = f
	if k[""][name] == nil {
		k[""][name] = f
	}
	return nil
}

// under returns the family's policy if its class has the policy class.
func (f *keeping) under(class gc.Policy) gc.Policy {
	if f.versions == 0 {
		return class
	}
	return gc.Any(class, gc.MaxVersions(f.versions))
}

// of returns a family of a dataset. A family has the same policy in all datasets. A family of no dataset has no
// policy.
func (k kept) of(dataset, name string) *keeping {
	if f := k[dataset][name]; f != nil {
		return f
	}
	if k[""][name] == nil {
		k[""][name] = &keeping{class: name}
	}
	return k[""][name]
}

// has reports whether a dataset declares the class.
func (k kept) has(class string) bool { return k.policy(class) != nil }

// policy returns the policy of a class, or nil if no dataset declares it.
func (k kept) policy(class string) *gc.Policy {
	for _, dataset := range slices.Sorted(maps.Keys(k)) { // sorted, so that the result is stable if datasets differ
		for _, f := range k[dataset] {
			if f.declared && f.class == class && f.versions == 0 {
				return &f.policy
			}
		}
	}
	return nil
}

// classes returns the classes that datasets declare.
func (k kept) classes() map[string]bool {
	out := map[string]bool{}
	for _, families := range k {
		for _, f := range families {
			if f.declared {
				out[f.class] = true
			}
		}
	}
	return out
}
