package gc

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/tidemark-go/tidemark/internal/invalid"
)

// A Policy says which cells of a column family may be removed. The zero value is [Never].
//
// A Policy is immutable and safe for concurrent use. Compare two with [Policy.Equal]; the compiler refuses ==.
type Policy struct {
	policyGate
	terms []term         // in normal form; empty removes nothing
	bad   *invalid.Error // the first invalid input; terms is nil then
}

// Never returns the policy that removes nothing: every version of every cell is kept forever.
func Never() Policy { return Policy{} }

// MaxAge returns the policy that removes cells whose timestamp is more than age in the past.
//
// The age must be positive and a whole number of seconds, because the Cloud Bigtable client reports no fractions.
// Otherwise [Policy.Validate] returns an error.
func MaxAge(age time.Duration) Policy {
	if age <= 0 || age%time.Second != 0 {
		return refused("maxage", age.String(), "a positive whole number of seconds")
	}
	return Policy{terms: []term{{age: age}}}
}

// MaxVersions returns the policy that removes all but the newest n cells of each column of a row.
//
// n must be 1 to 2147483647. Otherwise [Policy.Validate] returns an error.
func MaxVersions(n int) Policy {
	if n < 1 || n > math.MaxInt32 {
		return refused("maxversions", strconv.Itoa(n), "1 to 2147483647")
	}
	return Policy{terms: []term{{versions: n}}}
}

// Any returns the union of policies: it removes a cell if at least one of them does. [Never] adds nothing to it.
//
// At least one policy is required, and each must be valid. Otherwise [Policy.Validate] returns an error.
func Any(policies ...Policy) Policy {
	if bad := refusal("any", policies); bad != nil {
		return Policy{bad: bad}
	}
	var terms []term
	for _, p := range policies {
		terms = append(terms, p.terms...)
	}
	return Policy{terms: normalize(terms)}
}

// All returns the intersection of policies: it removes a cell only if all of them do. If one of them is [Never], the
// result is Never.
//
// At least one policy is required, and each must be valid. Otherwise [Policy.Validate] returns an error.
func All(policies ...Policy) Policy {
	if bad := refusal("all", policies); bad != nil {
		return Policy{bad: bad}
	}
	terms := policies[0].terms
	for _, p := range policies[1:] {
		terms = intersect(terms, p.terms)
	}
	return Policy{terms: terms}
}

// Validate returns nil if the policy is valid, else an error that names the invalid input, its
// value, and what is allowed. For nested policies the name is a path: "any[1].maxage".
//
// A policy may have at most 500 bytes in the service's encoding. A pair of an age and a number of versions takes
// about 18 bytes.
func (p Policy) Validate() error {
	if p.bad != nil {
		return p.bad
	}
	if size := ruleSize(p.terms); size > maxRuleBytes {
		return invalid.New(invalid.ErrPolicy, "policy", fmt.Sprintf("%d bytes long", size),
			fmt.Sprintf("at most %d bytes in the service's encoding", maxRuleBytes))
	}
	return nil
}

// Equal reports whether p and q remove the same cells, however they were built. A policy that [Policy.Validate]
// rejects equals only a policy with the same invalid input.
func (p Policy) Equal(q Policy) bool {
	if p.bad != nil || q.bad != nil {
		return p.bad != nil && q.bad != nil && p.bad.Error() == q.bad.Error()
	}
	return slices.Equal(p.terms, q.terms)
}

// refused returns an invalid policy that stores its error.
func refused(field, value, limit string) Policy {
	return Policy{bad: invalid.New(invalid.ErrPolicy, field, value, limit)}
}

// refusal returns why the policies cannot be joined, or nil.
func refusal(join string, policies []Policy) *invalid.Error {
	if len(policies) == 0 {
		return invalid.New(invalid.ErrPolicy, join, "empty", "at least one policy")
	}
	for i, p := range policies {
		if p.bad != nil {
			return invalid.New(invalid.ErrPolicy, fmt.Sprintf("%s[%d].%s", join, i, p.bad.Field), p.bad.Value, p.bad.Limit)
		}
	}
	return nil
}
