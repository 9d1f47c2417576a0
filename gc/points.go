package gc

import (
	"time"

	"github.com/tidemark-go/tidemark/internal/instant"
	"github.com/tidemark-go/tidemark/internal/invalid"
)

// PointAge returns the age at which a point expires. If bounded is false, points never expire and age is 0.
//
// A point is a row with one cell. So the result is the smallest age in an [Any] and the largest age in an [All];
// [Never] is an unlimited age.
//
// A cell has a timestamp in whole milliseconds, and expires when it is before the current time minus the age, rounded
// up to a millisecond. That is exact: the service may remove these cells, and no others. It is also exact for a point
// with a more precise time, because its cell's timestamp is rounded down.
//
// It returns an error if [MaxVersions] changes what the policy removes. The only cell of a column is
// always among its newest. So in an All, the version rule would keep points forever; in an Any, it would have no
// effect. Neither is what the author wanted. A version rule that another rule makes redundant is not part of the
// policy, and is accepted. For a policy that [Policy.Validate] rejects, PointAge returns the same error.
func (p Policy) PointAge() (age time.Duration, bounded bool, err error) {
	if err := p.Validate(); err != nil {
		return 0, false, err
	}
	for _, t := range p.terms {
		if t.versions != 0 {
			return 0, false, invalid.New(invalid.ErrVersions, "policy", invalid.Quote(p.String()), "ages only, or never")
		}
	}
	if len(p.terms) == 0 {
		return 0, false, nil
	}
	return p.terms[0].age, true, nil // in normal form, ages alone are one term
}

// Cutoff returns the oldest timestamp that a visible point may have at the time now, in UTC. If bounded is false, there
// is no limit. It returns the errors of [Policy.PointAge]. A cell has expired if its timestamp is before the cutoff.
func (c policyCore) Cutoff(now time.Time) (cutoff time.Time, bounded bool, err error) {
	age, bounded, err := c.Value().PointAge()
	if err != nil || !bounded {
		return time.Time{}, false, err
	}
	return instant.Cutoff(now, age), true, nil
}
