// Package gc defines how long data is stored.
//
// A [Policy] is a garbage collection policy of Cloud Bigtable, a retention class ([Class]) a policy with the name of
// its column family:
//
//	var d90 = gc.Class{Name: "d90", Policy: gc.MaxAge(90 * 24 * time.Hour)}
//
// # Policies
//
//	gc.MaxAge(30 * 24 * time.Hour) // removes cells older than 30 days
//	gc.MaxVersions(2)              // removes all but the newest 2 cells of a column
//	gc.Any(p, q)                   // removes the cells that p or q removes: a union
//	gc.All(p, q)                   // removes the cells that both remove: an intersection
//	gc.Never()                     // removes nothing; the zero Policy is the same
//
// Constructors leave out redundant rules: gc.Any(gc.MaxAge(7*day), gc.All(gc.MaxAge(30*day), p)) is gc.MaxAge(7*day).
//
// [Parse] and [Policy.String] use the syntax of Google's cbt tool:
//
//	maxage=30d || (maxage=3d && maxversions=100)
//
// # Points
//
// Only its age ([Policy.PointAge]) can remove a point. Reads leave out older points at once: Cloud Bigtable may remove
// cells up to a week late.
package gc
