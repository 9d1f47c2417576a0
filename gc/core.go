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
