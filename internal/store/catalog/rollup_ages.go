package catalog

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/tidemark-go/tidemark/gc"
)

// The ages of rollups are stored next to the classes, not in them: an older program that rewrites the classes keeps
// unknown members of the dataset, but not of its classes.

// RollupAge returns how long rollups of tenants in a class are kept at most; 0 means as long as the rollups' own
// classes say. If the age does not parse, a newer program wrote it, and RollupAge returns the shortest possible age, so
// that no rollup is visible for too long.
func (d *Dataset) RollupAge(class string) time.Duration {
	text, ok := d.RollupAges[class]
	if !ok {
		return 0
	}
	if policy, err := gc.Parse(text); err == nil {
		if age, bounded, err := policy.PointAge(); err == nil && bounded {
			return age
		}
	}
	return time.Second
}

// ShortestRollupAge returns the shortest RollupAge of all classes; 0 means none.
func (d *Dataset) ShortestRollupAge() (shortest time.Duration) {
	for class := range d.RollupAges {
		if age := d.RollupAge(class); shortest == 0 || age < shortest {
			shortest = age
		}
	}
	return shortest
}

// rollupAges lists the classes for which the ages of rollups differ, and how.
func (d *Dataset) rollupAges(o *Dataset) (diffs [][3]string) {
	both := maps.Clone(d.RollupAges)
	if both == nil {
		both = map[string]string{}
	}
	maps.Copy(both, o.RollupAges)
	for _, class := range slices.Sorted(maps.Keys(both)) {
		if !slices.ContainsFunc(o.Classes, func(c Class) bool { return c.Name == class }) {
			continue // the class itself is new
		}
		declared, stored := cmp.Or(d.RollupAges[class], "each rollup's own"), cmp.Or(o.RollupAges[class], "each rollup's own")
		if declared != stored {
			diffs = append(diffs, [3]string{class, declared, stored})
		}
	}
	return diffs
}

// document returns the dataset as JSON that replaces a document, even if it drops all of the document's rollups or their
// ages. It keeps members that this version does not know, such as cold_after of earlier versions.
func (d *Dataset) document(old []byte) ([]byte, error) {
	return merged(old, d, "rollups", "rollup_ages")
}

// Keeping says, as policies, how long data of tenants in one class of a dataset is kept.
type Keeping struct {
	Class, Points string
	Rollups       []RollupKeeping
}

// RollupKeeping says how long the buckets of one rollup are kept.
type RollupKeeping struct{ Name, Policy string }

// Keeping returns how long data of tenants in a class is kept: points and rollups. For a class that no tenant can
// choose, it uses the default class.
func (d *Dataset) Keeping(class string) Keeping {
	if len(d.Classes) == 0 {
		return Keeping{}
	}
	i := max(0, slices.IndexFunc(d.Classes, func(c Class) bool { return c.Name == class && c.Choice }))
	k := Keeping{Class: d.Classes[i].Name, Points: d.Classes[i].Policy}
	age := d.RollupAge(k.Class)
	for _, r := range d.Rollups {
		policy := r.Class.Policy
		if age > 0 {
			own, err := gc.Parse(policy)
			if at, bounded, ageErr := own.PointAge(); err == nil && ageErr == nil && (!bounded || age < at) {
				policy = gc.MaxAge(age).String()
			}
		}
		k.Rollups = append(k.Rollups, RollupKeeping{r.Name, policy})
	}
	return k
}

// String returns a readable text: "points maxage=30d, rollup hour maxage=60d".
func (k Keeping) String() string {
	text := "points " + k.Points
	for _, r := range k.Rollups {
		text += ", rollup " + r.Name + " " + r.Policy
	}
	return text
}

// Kept says how long points and rollups are kept: one line for each class, and none for a dataset without rollups.
func (d *Dataset) Kept() (lines []string) {
	if len(d.Rollups) == 0 {
		return nil
	}
	for _, class := range d.Offers() {
		lines = append(lines, fmt.Sprintf("%s, class %s: %v", d.Name, class, d.Keeping(class)))
	}
	return lines
}
