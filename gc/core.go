package gc

import (
	"iter"
	"time"

	"github.com/tidemark-go/tidemark/internal/gate"
)

type (
	policyGate = gate.Gate[policyCore]
	policyCore struct{ gate.Core[Policy] }
)

// The core that gate.Of returns.
var _ gate.Face[policyCore] = Policy{}.policyGate

// Terms returns the rules whose union the policy is, in normal form: ages that fall and numbers of versions that
// rise. A rule removes the cells that are older than the age and have at least that number of newer versions; 0 is no
// condition. [Never] and a policy that [Policy.Validate] rejects have no rules.
func (c policyCore) Terms() iter.Seq2[time.Duration, int] {
	return func(yield func(time.Duration, int) bool) {
		for _, t := range c.Value().terms {
			if !yield(t.age, t.versions) {
				return
			}
		}
	}
}

// KeepsAllOf reports whether the policy keeps every cell that q keeps, so that replacing a family's policy q by it
// loses no data. It may be false in both directions: neither of maxage=7d and maxversions=2 keeps all of the other. If
// [Policy.Validate] rejects one of them, the result is false.
func (c policyCore) KeepsAllOf(q Policy) bool { return c.Value().keepsAllOf(q) }

// Removes reports whether the policy removes a cell of this age with this many newer cells in its column. A point has
// no newer cells in its column. A policy that [Policy.Validate] rejects removes nothing.
func (c policyCore) Removes(age time.Duration, newer int) bool {
	for _, t := range c.Value().terms {
		if (t.age == 0 || age > t.age) && (t.versions == 0 || newer >= t.versions) {
			return true
		}
	}
	return false
}

// Cutoff returns the oldest timestamp that a visible point may have at the time now, in UTC. If bounded is false, there
// is no limit. It returns the errors of [Policy.PointAge]. A cell has expired if its timestamp is before the cutoff.
func (c policyCore) Cutoff(now time.Time) (cutoff time.Time, bounded bool, err error) {
	return c.Value().cutoff(now)
}
