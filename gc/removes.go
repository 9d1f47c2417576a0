package gc

import "time"

// Removes reports whether the policy removes a cell of this age with this many newer cells in its column. A point has
// no newer cells in its column. A policy that [Policy.Validate] rejects removes nothing.
func (p Policy) Removes(age time.Duration, newer int) bool {
	for _, t := range p.terms {
		if (t.age == 0 || age > t.age) && (t.versions == 0 || newer >= t.versions) {
			return true
		}
	}
	return false
}
