package gc

import (
	"errors"
	"time"

	"github.com/tidemark-go/tidemark/internal/invalid"
)

// ErrVersions is wrapped by the error for a policy that counts versions where there is only ever one.
var ErrVersions = errors.New("gc: versions policies do not apply to points")

// PointAge reduces the policy to the age at which a point expires. Where bounded is false points never do, and age is 0.
//
// A point is a row with one cell, so the reduction is simple: of ages joined by [Any] the smallest counts, of ages joined
// by [All] the largest, and [Never] is an age without end.
//
// A policy in which [MaxVersions] makes a difference is refused with [ErrVersions], since the only cell of a column is
// always among its newest. Joined to an age by All it would keep points for ever, whatever the age says; joined by Any it
// would do nothing. Neither is what its author meant. A version rule that makes no difference in any table, as another
// rule removes all that it could, is no part of the policy and not refused. A policy that [Policy.Validate] refuses
// fails with its error.
//
// Call it once, when a schema is defined, and keep the age for [Cutoff].
func (p Policy) PointAge() (age time.Duration, bounded bool, err error) {
	if err := p.Validate(); err != nil {
		return 0, false, err
	}
	for _, t := range p.terms {
		if t.versions != 0 {
			return 0, false, invalid.New(ErrVersions, "policy", invalid.Quote(p.String()), "ages only, or never")
		}
	}
	if len(p.terms) == 0 {
		return 0, false, nil
	}
	return p.terms[0].age, true, nil // in normal form, ages alone are one term
}

// Cutoff returns the oldest timestamp that a point may have at the time now under the policy. Where bounded is false
// there is none. It fails as [Policy.PointAge] does; see the function [Cutoff] for what the time means.
func (p Policy) Cutoff(now time.Time) (cutoff time.Time, bounded bool, err error) {
	age, bounded, err := p.PointAge()
	if err != nil || !bounded {
		return time.Time{}, false, err
	}
	return Cutoff(now, age), true, nil
}

// Cutoff returns the oldest timestamp that a cell may have at the time now if cells live for age: a cell is expired when
// its timestamp is before the cutoff.
//
// Cells carry whole milliseconds. The cutoff is now-age rounded up to one, which for them is exact: what the service may
// remove at now is before it, and nothing else is. The same goes for a point with a finer time, whose cell carries it
// rounded down. The result is in UTC. It costs no allocation.
func Cutoff(now time.Time, age time.Duration) time.Time {
	exact := now.UTC().Add(-age)
	cutoff := exact.Truncate(time.Millisecond)
	if cutoff.Before(exact) {
		cutoff = cutoff.Add(time.Millisecond)
	}
	return cutoff
}
