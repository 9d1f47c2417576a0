package gc

import (
	"cmp"
	"slices"
	"time"
)

// A term removes the cells that are older than age and have at least versions newer cells in their column. Zero in either
// is no condition, and a term has at least one.
//
// A policy in normal form is a union of terms of which none removes everything that another one removes: a staircase,
// with ages going down strictly and versions up strictly. There is exactly one for each set of removed cells.
type term struct {
	age      time.Duration
	versions int
}

// normalize returns the normal form of a union of terms. It reorders its argument and may return a part of it.
func normalize(terms []term) []term {
	slices.SortFunc(terms, func(a, b term) int {
		return cmp.Or(cmp.Compare(a.age, b.age), cmp.Compare(a.versions, b.versions))
	})
	kept := terms[:0]
	for _, t := range terms {
		// Every kept term asks for no more age than t, so t adds something only if it asks for fewer versions.
		if len(kept) == 0 || t.versions < kept[len(kept)-1].versions {
			kept = append(kept, t)
		}
	}
	if len(kept) == 0 {
		return nil
	}
	slices.Reverse(kept)
	return kept
}

// intersect returns the normal form of what both unions of terms remove.
func intersect(a, b []term) []term {
	var both []term
	for _, t := range a {
		for _, u := range b {
			both = append(both, term{age: max(t.age, u.age), versions: max(t.versions, u.versions)})
		}
	}
	return normalize(both)
}
