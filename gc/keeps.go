package gc

import "time"

// keepsAllOf reports whether p keeps every cell that q keeps.
func (p Policy) keepsAllOf(q Policy) bool {
	if p.bad != nil || q.bad != nil {
		return false
	}
	for _, t := range p.terms {
		if !q.covers(t) {
			return false
		}
	}
	return true
}

// covers reports whether p removes all cells that t removes. These cells are a quadrant of ages and numbers of newer
// cells. A union of quadrants contains a quadrant only if one of them contains its corner.
func (p Policy) covers(t term) bool {
	for _, u := range p.terms {
		if u.age <= t.age && u.versions <= t.versions {
			return true
		}
	}
	return false
}

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
