package gc

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/tidemark-go/tidemark/internal/invalid"
)

// ErrInvalid is wrapped by every error about a policy or a class that Cloud Bigtable or this module would not accept.
var ErrInvalid = errors.New("gc: invalid retention")

// A Policy says which cells of a column family may be removed. The zero value is [Never].
//
// A Policy is immutable and safe for concurrent use. Compare two with [Policy.Equal]; the compiler refuses ==.
type Policy struct {
	terms []term         // in normal form; none removes nothing
	bad   *invalid.Error // the first input that was refused; terms is nil then
}

// Never returns the policy that removes nothing, so that every version of every cell is kept for ever.
func Never() Policy { return Policy{} }

// MaxAge returns the policy that removes cells whose timestamp is more than age in the past.
//
// The age must be positive and a whole number of seconds, as the Cloud Bigtable client reports no finer ones;
// [Policy.Validate] tells otherwise.
func MaxAge(age time.Duration) Policy {
	if age <= 0 || age%time.Second != 0 {
		return refused("maxage", age.String(), "a positive whole number of seconds")
	}
	return Policy{terms: []term{{age: age}}}
}

// MaxVersions returns the policy that removes all but the newest n cells of each column of a row.
//
// The number must be from 1 to 2147483647; [Policy.Validate] tells otherwise.
func MaxVersions(n int) Policy {
	if n < 1 || n > math.MaxInt32 {
		return refused("maxversions", strconv.Itoa(n), "1 to 2147483647")
	}
	return Policy{terms: []term{{versions: n}}}
}

// Any returns the union of policies: it removes a cell if at least one of them does. [Never] adds nothing to it.
//
// There must be at least one policy, and each must be valid; [Policy.Validate] tells otherwise.
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

// All returns the intersection of policies: it removes a cell only if every one of them does. With [Never] among them it
// is Never.
//
// There must be at least one policy, and each must be valid; [Policy.Validate] tells otherwise.
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

// Validate returns nil if the policy can be used, and otherwise an error that wraps [ErrInvalid] and names the input that
// was refused, its value, and what would have been accepted. Where policies are nested the name is a path:
// "any[1].maxage".
//
// It also refuses a policy over 500 bytes in the service's own encoding, in which a pair of an age and a number of
// versions takes about 18.
func (p Policy) Validate() error {
	if p.bad != nil {
		return p.bad
	}
	if size := ruleSize(p.terms); size > maxRuleBytes {
		return invalid.New(ErrInvalid, "policy", fmt.Sprintf("%d bytes long", size),
			fmt.Sprintf("at most %d bytes in the service's encoding", maxRuleBytes))
	}
	return nil
}

// Equal reports whether p and q remove the same cells, however they were put together. A policy that [Policy.Validate]
// refuses equals only one that was refused for the same input.
func (p Policy) Equal(q Policy) bool {
	if p.bad != nil || q.bad != nil {
		return p.bad != nil && q.bad != nil && p.bad.Error() == q.bad.Error()
	}
	return slices.Equal(p.terms, q.terms)
}

// refused returns a policy that remembers why it is none.
func refused(field, value, limit string) Policy {
	return Policy{bad: invalid.New(ErrInvalid, field, value, limit)}
}

// refusal returns why the policies cannot be joined, if so.
func refusal(join string, policies []Policy) *invalid.Error {
	if len(policies) == 0 {
		return invalid.New(ErrInvalid, join, "empty", "at least one policy")
	}
	for i, p := range policies {
		if p.bad != nil {
			return invalid.New(ErrInvalid, fmt.Sprintf("%s[%d].%s", join, i, p.bad.Field), p.bad.Value, p.bad.Limit)
		}
	}
	return nil
}
