package dataset

import (
	"fmt"
	"maps"
	"slices"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/internal/gcrule"
	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/store/catalog"
)

// Family is a column family that datasets need, and its purpose.
type Family struct {
	Name   string
	Policy gc.Policy
	Type   bigtable.Type // nil for an ordinary family
	Class  gc.Class      // the family's retention class; zero for one of the store's own families
	// Versions is how many cells of a column the policy keeps, whatever their age; 0 means that it does not count them.
	Versions int
	Uses     []Use
	// Differs returns how the type of a table's family differs from the needed one, or "" if it does not. No family can
	// be converted.
	Differs func(have bigtable.Type) string
}

// Rollups reports whether the family holds only rollups, whose age counts from the start of a bucket.
func (f Family) Rollups() bool {
	return len(f.Uses) > 0 && !slices.ContainsFunc(f.Uses, func(u Use) bool { return !u.Rollup })
}

// Use says in words what a dataset stores in a family: "points", "heads", "sums of rollup hourly".
type Use struct {
	Dataset, What string
	Rollup        bool // it stores a rollup's buckets
}

// RollupFamilies are the column families of a rollup.
type RollupFamilies struct{ Sum, Min, Max, Control string }

// MarkFamily is the family of the marks of all rollups.
const MarkFamily = "_mark"

// CheckTogether refuses datasets that contradict each other.
func CheckTogether(all []*Dataset) error {
	classes := map[string]Class{}
	for i, d := range all {
		for _, other := range all[:i] {
			if other.Name == d.Name {
				return invalid.New(ErrInvalid, "dataset", invalid.Quote(d.Name), "each name once")
			}
		}
		for _, c := range d.allClasses() {
			if other, ok := classes[c.Name]; ok && !other.Policy.Equal(c.Policy) {
				return invalid.New(ErrInvalid, "retention class", invalid.Quote(c.Name),
					fmt.Sprintf("one policy, not both %q and %q", other.Policy, c.Policy))
			}
			classes[c.Name] = c
		}
	}
	return nil
}

// Names returns the names of datasets.
func Names(shapes []*Dataset) []string {
	out := make([]string, len(shapes))
	for i, d := range shapes {
		out[i] = d.Name
	}
	return out
}

// FamiliesOf returns the families that the datasets need, including the store's own.
func FamiliesOf(shapes []*Dataset) map[string]bigtable.Family {
	out := map[string]bigtable.Family{catalog.Family: {GCPolicy: bigtable.MaxVersionsPolicy(1)}}
	for _, d := range shapes {
		d.headFamilies(out)
		d.rollupFamilies(out)
		if d.Head.Only {
			continue
		}
		for _, c := range d.Classes {
			out[c.Name] = bigtable.Family{GCPolicy: gcrule.To(c.Policy)}
		}
	}
	return out
}

// CompareFamilies returns the families that the table lacks, and how its other families differ.
func CompareFamilies(want map[string]bigtable.Family, info *bigtable.TableInfo) (missing map[string]bigtable.Family, diffs []string) {
	missing = maps.Clone(want)
	for _, have := range info.FamilyInfos {
		w, ok := want[have.Name]
		if !ok {
			continue
		}
		delete(missing, have.Name)
		if diff := compareType(have.Name, w.ValueType, have.ValueType); diff != "" {
			diffs = append(diffs, diff)
			continue
		}
		declared, err := gcrule.From(w.GCPolicy)
		if err != nil {
			diffs = append(diffs, fmt.Sprintf("family %s: declared policy: %v", have.Name, err))
			continue
		}
		stored, err := gcrule.From(have.FullGCPolicy)
		if err != nil {
			diffs = append(diffs, fmt.Sprintf("family %s: the table's policy %q: %v", have.Name, have.GCPolicy, err))
			continue
		}
		if !declared.Equal(stored) {
			diffs = append(diffs, fmt.Sprintf("family %s: policy declared as %q, the table has %q", have.Name, declared, stored))
		}
	}
	return missing, diffs
}

// compareType returns how the type of a table's family differs from the needed one, or "" if it does not. No family can
// be converted.
func compareType(family string, want, have bigtable.Type) string {
	_, aggregate := have.(bigtable.AggregateType)
	switch {
	case want == nil && aggregate:
		return fmt.Sprintf("family %s: is an aggregate family, points need an ordinary one", family)
	case want == nil:
		return ""
	case !aggregate:
		return fmt.Sprintf("family %s: is an ordinary family, a rollup needs one of %s", family, typeName(want))
	case typeName(want) != typeName(have):
		return fmt.Sprintf("family %s: holds %s, a rollup needs one of %s", family, typeName(have), typeName(want))
	}
	return ""
}

// typeName returns in words what an aggregate family holds.
func typeName(t bigtable.Type) string {
	a, _ := t.(bigtable.AggregateType)
	input := "other inputs"
	if _, ok := a.Input.(bigtable.Int64Type); ok {
		input = "int64"
	}
	switch a.Aggregator.(type) {
	case bigtable.SumAggregator:
		return "sums of " + input
	case bigtable.MinAggregator:
		return "minima of " + input
	case bigtable.MaxAggregator:
		return "maxima of " + input
	}
	return "another aggregate of " + input
}

// FamiliesFromCatalog returns the families that datasets without a schema need, and the purpose of each.
func FamiliesFromCatalog(entries []catalog.Dataset) ([]Family, error) {
	shapes := make([]*Dataset, len(entries))
	for i, e := range entries {
		var err error
		if shapes[i], err = FromCatalog(e); err != nil {
			return nil, err
		}
	}
	if err := CheckTogether(shapes); err != nil {
		return nil, err
	}
	all := map[string]*Family{}
	for name, f := range FamiliesOf(shapes) {
		policy, err := gcrule.From(f.GCPolicy)
		if err != nil {
			return nil, fmt.Errorf("family %s: %w", name, err)
		}
		all[name] = &Family{Name: name, Policy: policy, Type: f.ValueType, Differs: func(have bigtable.Type) string {
			return compareType(name, f.ValueType, have)
		}}
	}
	all[catalog.Family].Versions = 1
	for _, d := range shapes {
		d.uses(all)
	}
	out := make([]Family, 0, len(all))
	for _, name := range slices.Sorted(maps.Keys(all)) {
		out = append(out, *all[name])
	}
	return out, nil
}

// uses records what the dataset stores in each of its families.
func (d *Dataset) uses(families map[string]*Family) {
	use := func(name, what string, class gc.Class, versions int) {
		f := families[name]
		f.Class, f.Versions = class, versions
		f.Uses = append(f.Uses, Use{Dataset: d.Name, What: what})
	}
	for i, c := range d.Classes {
		if !d.Head.Only {
			use(c.Name, "points", c.Class, 0)
		}
		if d.Head.Points > 0 {
			use(d.HeadClasses[i].Name, "heads", c.Class, d.Head.Points)
		}
		if d.Head.Fields {
			use(d.fields[i].Name, "fields of heads", c.Class, 1)
		}
	}
	for i := range d.Rollups {
		u := &d.Rollups[i]
		bucket := func(name, what string, versions int) {
			use(name, what+" of rollup "+u.Name, u.Class.Class, versions)
			f := families[name]
			f.Uses[len(f.Uses)-1].Rollup = true
		}
		bucket(u.Families.Sum, "sums", 0)
		bucket(u.Families.Min, "minima", 0)
		bucket(u.Families.Max, "maxima", 0)
		bucket(u.Families.Control, "notes", 1)
		if u.Kind == catalog.Derived {
			use(MarkFamily, "marks of rollup "+u.Name, gc.Class{}, 1)
		}
	}
}
