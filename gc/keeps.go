package gc

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
