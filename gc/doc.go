// Package gc says how long data is kept.
//
// Cloud Bigtable removes old cells by a rule on their column family, its garbage collection policy. This package holds
// such a rule as a value, [Policy], and names one with its family as a retention class, [Class]:
//
//	var d90 = gc.Class{Name: "d90", Policy: gc.MaxAge(90 * 24 * time.Hour)}
//
// # Policies
//
// A policy is made of two rules and two ways to join them:
//
//	gc.MaxAge(30 * 24 * time.Hour) // removes cells older than 30 days
//	gc.MaxVersions(2)              // removes all but the newest 2 cells of a column
//	gc.Any(p, q)                   // removes what p or q would: the union of what they remove
//	gc.All(p, q)                   // removes only what both would: the intersection
//	gc.Never()                     // removes nothing; the zero Policy is the same
//
// A policy that was given nonsense (an age of zero, a union of nothing) remembers what was wrong, so that schemas can be
// plain literals. [Policy.Validate] tells; whatever stores or sends a policy calls it first.
//
// # Normal form
//
// What a policy removes depends on two numbers of a cell: its age, and how many newer cells its column holds. A policy
// is therefore a staircase in a plane, and two policies that remove the same cells are the same staircase, however they
// were put together. Policies are kept in that form from the start: rules that another one makes pointless are gone,
// nesting is gone, and [Policy.Equal] compares what is removed and nothing else. In
//
//	gc.Any(gc.MaxAge(7*day), gc.All(gc.MaxAge(30*day), gc.MaxVersions(3)))
//
// the second rule removes only cells that the first one removes already, so this is gc.MaxAge(7*day), prints as
// maxage=7d, and is sent to the service as one rule.
//
// # Text
//
// [Parse] and [Policy.String] use the syntax of Google's cbt tool, with the same precedence:
//
//	maxage=30d || (maxage=3d && maxversions=100)
//
// Equal policies have equal text. Policy implements [encoding.TextMarshaler] and [encoding.TextUnmarshaler], so it can
// stand in JSON and in flags.
//
// # Points
//
// A stored point is a row with one cell, so only its age can end it. [Policy.PointAge] reduces a policy to that age, and
// [Cutoff] turns the age into the oldest timestamp that is still to be shown. Cloud Bigtable removes cells when it gets
// round to it, up to a week late; readers that filter by the cutoff see them vanish on time. A policy in which versions
// matter is refused for points, with [ErrVersions].
//
// # Cloud Bigtable
//
// [Policy.Bigtable] and [FromBigtable] convert to and from the policies of cloud.google.com/go/bigtable.
//
// Policies and classes are immutable values. They may be copied and used by any number of goroutines at once.
package gc
