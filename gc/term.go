package gc

import (
	"cmp"
	"slices"
	"time"
)

// A term removes the cells that are older than age and have at least versions newer cells in their column. A zero
// field is no condition; a term has at least one condition.
//
// A policy in normal form is a union of terms, none of which another one includes: a staircase, with strictly
// decreasing ages and strictly increasing versions. Each set of removed cells has exactly one normal form.
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
		// Every kept term has an age of at most t's, so t adds cells only if it has fewer versions.
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

// intersect returns the normal form of the intersection of two unions of terms.
func intersect(a, b []term) []term {
	var both []term
	for _, t := range a {
		for _, u := range b {
			both = append(both, term{age: max(t.age, u.age), versions: max(t.versions, u.versions)})
		}
	}
	return normalize(both)
}
