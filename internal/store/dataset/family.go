package dataset

import (
	"slices"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/gc"
)

// Family is a column family that datasets need, and what it is for.
type Family struct {
	Name   string
	Policy gc.Policy
	Type   bigtable.Type // of an aggregate family; nil for an ordinary one
	Class  gc.Class      // the retention class that it belongs to; zero for a family of the store's own
	// Versions is how many cells of a column the policy keeps, whatever their age; 0 where it does not count them.
	Versions int
	Uses     []Use
	// Differs says how the kind of the family that a table has is another one, and is empty where it is the same. No family
	// can be converted.
	Differs func(have bigtable.Type) string
}

// Rollups reports whether the family is of rollups alone, whose age counts from the start of a bucket.
func (f Family) Rollups() bool {
	return len(f.Uses) > 0 && !slices.ContainsFunc(f.Uses, func(u Use) bool { return !u.Rollup })
}

// Use is what a dataset keeps in a family, in words: "points", "heads", "sums of rollup hourly".
type Use struct {
	Dataset, What string
	Rollup        bool // it is of a rollup's buckets
}

// RollupFamilies are the column families of a rollup.
type RollupFamilies struct{ Sum, Min, Max, Control string }

// MarkFamily is the family of the marks of all rollups.
const MarkFamily = "_mark"
