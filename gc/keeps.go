package gc

// KeepsAllOf reports whether p keeps every cell that q keeps, so that a family whose policy q is replaced with p loses nothing
// that it would have kept: p removes the same cells or fewer. Two policies of which neither keeps all of the other are
// possible: maxage=7d and maxversions=2.
//
// A policy that [Policy.Validate] refuses says nothing about cells: the result is false, whichever of the two it is.
func (p Policy) KeepsAllOf(q Policy) bool {
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

// covers reports whether p removes all that t does. What t removes is a quadrant of ages and numbers of newer cells, and a
// quadrant lies within a union of quadrants only if its corner lies within one of them.
func (p Policy) covers(t term) bool {
	for _, u := range p.terms {
		if u.age <= t.age && u.versions <= t.versions {
			return true
		}
	}
	return false
}
