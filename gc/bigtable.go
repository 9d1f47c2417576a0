package gc

import (
	"fmt"
	"time"

	"cloud.google.com/go/bigtable"
	"cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/tidemark-go/tidemark/internal/invalid"
)

const (
	// maxRuleBytes is the service's limit on an encoded rule.
	maxRuleBytes = 500
	// maxNesting bounds the recursion over text and policies from outside. The service's limit on bytes is reached
	// first.
	maxNesting = 64
)

// Bigtable returns the policy as a type of the Cloud Bigtable client, in normal form: one rule, or a union of rules.
// Each rule is an age, a number of versions, or the intersection of the two.
//
// Call [Policy.Validate] first. For a policy that it rejects, the result is [bigtable.NoGcPolicy], which removes
// nothing.
func (p Policy) Bigtable() bigtable.GCPolicy {
	switch len(p.terms) {
	case 0:
		return bigtable.NoGcPolicy()
	case 1:
		return p.terms[0].bigtable()
	}
	union := make([]bigtable.GCPolicy, len(p.terms))
	for i, t := range p.terms {
		union[i] = t.bigtable()
	}
	return bigtable.UnionPolicy(union...)
}

func (t term) bigtable() bigtable.GCPolicy {
	switch {
	case t.versions == 0:
		return bigtable.MaxAgePolicy(t.age)
	case t.age == 0:
		return bigtable.MaxVersionsPolicy(t.versions)
	default:
		return bigtable.IntersectionPolicy(bigtable.MaxAgePolicy(t.age), bigtable.MaxVersionsPolicy(t.versions))
	}
}

// FromBigtable converts a policy of the Cloud Bigtable client, such as the FullGCPolicy that
// [bigtable.AdminClient.TableInfo] reports for a family. Nil is [Never], as it is for the client.
//
// It fails with [ErrInvalid] for a policy that no constructor of this package accepts, such as an age of zero, which
// the client reports for an age below one second. The client truncates other ages to whole seconds, and drops empty
// rules inside a union or an intersection, before this package sees the policy. Tables made by this module have
// neither.
func FromBigtable(policy bigtable.GCPolicy) (Policy, error) {
	if policy == nil {
		return Never(), nil
	}
	p := fromBigtable(policy, 0)
	if err := p.Validate(); err != nil {
		return Policy{}, err
	}
	return p, nil
}

func fromBigtable(policy bigtable.GCPolicy, depth int) Policy {
	if depth > maxNesting {
		return refused("policy", fmt.Sprintf("nested over %d deep", maxNesting), "a flatter one")
	}
	switch policy := policy.(type) {
	case bigtable.MaxAgeGCPolicy:
		return MaxAge(time.Duration(policy))
	case bigtable.MaxVersionsGCPolicy:
		return MaxVersions(int(policy))
	case bigtable.UnionGCPolicy:
		return Any(fromBigtables(policy.Children, depth+1)...)
	case bigtable.IntersectionGCPolicy:
		return All(fromBigtables(policy.Children, depth+1)...)
	}
	if policy == bigtable.NoGcPolicy() {
		return Never()
	}
	return refused("policy", invalid.Quote(fmt.Sprintf("%T", policy)), "a policy made by package bigtable")
}

func fromBigtables(policies []bigtable.GCPolicy, depth int) []Policy {
	converted := make([]Policy, len(policies))
	for i, policy := range policies {
		converted[i] = fromBigtable(policy, depth)
	}
	return converted
}

// ruleSize returns the size of the terms in the service's encoding, in bytes.
func ruleSize(terms []term) int {
	if len(terms) == 1 {
		return proto.Size(terms[0].rule())
	}
	union := &adminpb.GcRule_Union{}
	for _, t := range terms {
		union.Rules = append(union.Rules, t.rule())
	}
	return proto.Size(&adminpb.GcRule{Rule: &adminpb.GcRule_Union_{Union: union}})
}

// rule returns the term in the client's encoding. The client does not export its own conversion.
func (t term) rule() *adminpb.GcRule {
	var rules []*adminpb.GcRule
	if t.age != 0 {
		rules = append(rules, &adminpb.GcRule{Rule: &adminpb.GcRule_MaxAge{MaxAge: durationpb.New(t.age)}})
	}
	if t.versions != 0 {
		rules = append(rules, &adminpb.GcRule{Rule: &adminpb.GcRule_MaxNumVersions{MaxNumVersions: int32(t.versions)}})
	}
	if len(rules) == 1 {
		return rules[0]
	}
	return &adminpb.GcRule{Rule: &adminpb.GcRule_Intersection_{Intersection: &adminpb.GcRule_Intersection{Rules: rules}}}
}
