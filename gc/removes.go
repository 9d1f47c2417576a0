package gc

import "time"

// Removes reports whether the policy lets a cell be removed that is of that age and has that many newer cells in its column.
// A point is alone in its column: it has none. A policy that [Policy.Validate] refuses removes nothing.
func (p Policy) Removes(age time.Duration, newer int) bool {
	for _, t := range p.terms {
		if (t.age == 0 || age > t.age) && (t.versions == 0 || newer >= t.versions) {
			return true
		}
	}
	return false
}
