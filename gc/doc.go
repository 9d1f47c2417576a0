// Package gc defines how long data is kept.
//
// Cloud Bigtable removes old cells by a rule of their column family, its garbage collection policy. This package has
// such a rule as a value, [Policy], and combines it with the family's name in a retention class, [Class]:
//
//	var d90 = gc.Class{Name: "d90", Policy: gc.MaxAge(90 * 24 * time.Hour)}
//
// # Policies
//
// There are two rules and two ways to combine policies:
//
//	gc.MaxAge(30 * 24 * time.Hour) // removes cells older than 30 days
//	gc.MaxVersions(2)              // removes all but the newest 2 cells of a column
//	gc.Any(p, q)                   // removes the cells that p or q removes: a union
//	gc.All(p, q)                   // removes the cells that both remove: an intersection
//	gc.Never()                     // removes nothing; the zero Policy is the same
//
// Constructors do not fail, so that schemas can be plain literals. A policy with invalid input (an age of zero, an
// empty union) stores the error, and [Policy.Validate] returns it. Code that stores or sends a policy calls Validate
// first.
//
// # Normal form
//
// The effect of a policy on a cell depends on two numbers: the cell's age, and how many newer cells its column has. A
// policy is therefore a staircase in a plane, and two policies that remove the same cells are the same staircase.
// Constructors store this normal form: without redundant rules and without nesting. [Policy.Equal] compares which
// cells are removed. In
//
//	gc.Any(gc.MaxAge(7*day), gc.All(gc.MaxAge(30*day), gc.MaxVersions(3)))
//
// the second rule removes only cells that the first one removes too. So this is gc.MaxAge(7*day), prints as
// maxage=7d, and is sent to the service as one rule.
//
// # Text
//
// [Parse] and [Policy.String] use the syntax of Google's cbt tool, with the same precedence:
//
//	maxage=30d || (maxage=3d && maxversions=100)
//
// Equal policies have equal text. Policy implements [encoding.TextMarshaler] and [encoding.TextUnmarshaler], for JSON
// and flags.
//
// # Points
//
// A stored point is a row with one cell, so only its age can remove it. [Policy.PointAge] returns that age, and
// [Cutoff] converts it to the oldest visible timestamp. Cloud Bigtable may remove cells up to a week late. Readers
// that filter by the cutoff hide them on time. [ErrVersions] rejects a policy for points if it depends on versions.
//
// # Cloud Bigtable
//
// [Policy.Bigtable] and [FromBigtable] convert to and from the policies of cloud.google.com/go/bigtable.
//
// Policies and classes are immutable values. They may be copied and used by any number of goroutines at once.
package gc
