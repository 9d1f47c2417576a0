package catalog

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tidemark-go/tidemark/gc"
)

// The ages from which data may be cold are stored next to the classes for the reason that the ages of rollups are.

// NeedsTiers says which instances have tiered storage, by docs.cloud.google.com/bigtable/docs/tiered-storage.
const NeedsTiers = "only instances on SSD have it"

// ColdText returns an age for ColdAfter: "30d".
func ColdText(age time.Duration) string {
	return strings.TrimPrefix(gc.MaxAge(age).String(), "maxage=")
}

// ColdAge returns the age from which data of a class may be cold; 0 means never.
func (d *Dataset) ColdAge(class string) (time.Duration, error) {
	text, ok := d.ColdAfter[class]
	if !ok {
		return 0, nil
	}
	age, err := ParseAge(text)
	if err != nil {
		return 0, fmt.Errorf("dataset %s: cold_after of retention class %s: %w", d.Name, class, err)
	}
	return age, nil
}

// ParseAge is the inverse of ColdText.
func ParseAge(text string) (time.Duration, error) {
	policy, err := gc.Parse("maxage=" + text)
	if err != nil {
		return 0, err
	}
	age, _, err := policy.PointAge()
	return age, err
}

// AllClasses returns the classes of points and of rollups, each name once.
func (d *Dataset) AllClasses() []Class {
	all := slices.Clone(d.Classes)
	for i := range d.Rollups {
		c := d.Rollups[i].Class
		if !slices.ContainsFunc(all, func(o Class) bool { return o.Name == c.Name }) {
			all = append(all, c)
		}
	}
	return all
}

// SameCold reports whether the classes of d may be cold from the same ages in o.
func (d *Dataset) SameCold(o *Dataset) bool { return len(d.ColdDifferences(o)) == 0 }

// ColdDifferences lists for which classes the ages differ, for a plan.
func (d *Dataset) ColdDifferences(o *Dataset) (diffs []string) {
	for _, c := range d.AllClasses() {
		declared, stored := cmp.Or(d.ColdAfter[c.Name], "never"), cmp.Or(o.ColdAfter[c.Name], "never")
		if declared != stored {
			diffs = append(diffs, fmt.Sprintf("dataset %s: data of retention class %s may be cold after: declared as %s, stored as %s", d.Name, c.Name, declared, stored))
		}
	}
	return diffs
}

// WithStoredCold returns d with the ages of o for the classes that o has: only a plan changes them.
func (d Dataset) WithStoredCold(o Dataset) Dataset { return d.WithCold(&o, o.AllClasses()) }

// WithCold returns d with the ages of o for some classes.
func (d Dataset) WithCold(o *Dataset, classes []Class) Dataset {
	d.ColdAfter = maps.Clone(d.ColdAfter)
	for _, c := range classes {
		age, ok := o.ColdAfter[c.Name]
		switch {
		case !ok:
			delete(d.ColdAfter, c.Name)
		case d.ColdAfter == nil:
			d.ColdAfter = map[string]string{c.Name: age}
		default:
			d.ColdAfter[c.Name] = age
		}
	}
	if len(d.ColdAfter) == 0 {
		d.ColdAfter = nil
	}
	return d
}
