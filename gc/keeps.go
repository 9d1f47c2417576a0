package gc

// KeepsAllOf reports whether the policy keeps every cell that q keeps, so that replacing a family's policy q by it
// loses no data. It may be false in both directions: neither of maxage=7d and maxversions=2 keeps all of the other. If
// [Policy.Validate] rejects one of them, the result is false.
func (c policyCore) KeepsAllOf(q Policy) bool {
	p := c.Value()
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
