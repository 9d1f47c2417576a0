// Package gcrule converts policies of package gc to and from those of the Cloud Bigtable client, which gc does not
// link.
package gcrule

import (
	"errors"
	"fmt"
	"time"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/internal/gate"
	"github.com/tidemark-go/tidemark/internal/invalid"
)

// maxNesting bounds the recursion over policies from outside. The service's limit on bytes is reached first.
const maxNesting = 64

// To returns a policy as a type of the client, in normal form. For an invalid policy it is one that removes nothing.
func To(p gc.Policy) bigtable.GCPolicy {
	var union []bigtable.GCPolicy
	for age, versions := range gate.Of(p).Terms() {
		switch {
		case versions == 0:
			union = append(union, bigtable.MaxAgePolicy(age))
		case age == 0:
			union = append(union, bigtable.MaxVersionsPolicy(versions))
		default:
			union = append(union, bigtable.IntersectionPolicy(bigtable.MaxAgePolicy(age), bigtable.MaxVersionsPolicy(versions)))
		}
	}
	switch len(union) {
	case 0:
		return bigtable.NoGcPolicy()
	case 1:
		return union[0]
	}
	return bigtable.UnionPolicy(union...)
}

// From converts a policy of the client. Nil is gc.Never. The error matches invalid.ErrPolicy.
func From(policy bigtable.GCPolicy) (gc.Policy, error) {
	if policy == nil {
		return gc.Never(), nil
	}
	p, err := from(policy, 0)
	if err == nil {
		err = p.Validate()
	}
	if err != nil {
		return gc.Policy{}, err
	}
	return p, nil
}

func from(policy bigtable.GCPolicy, depth int) (gc.Policy, error) {
	if depth > maxNesting {
		return gc.Policy{}, invalid.New(invalid.ErrPolicy, "policy", fmt.Sprintf("nested over %d deep", maxNesting), "a flatter one")
	}
	switch policy := policy.(type) {
	case bigtable.MaxAgeGCPolicy:
		return gc.MaxAge(time.Duration(policy)), nil
	case bigtable.MaxVersionsGCPolicy:
		return gc.MaxVersions(int(policy)), nil
	case bigtable.UnionGCPolicy:
		return joined("any", gc.Any, policy.Children, depth+1)
	case bigtable.IntersectionGCPolicy:
		return joined("all", gc.All, policy.Children, depth+1)
	}
	if policy == bigtable.NoGcPolicy() {
		return gc.Never(), nil
	}
	return gc.Policy{}, invalid.New(invalid.ErrPolicy, "policy", invalid.Quote(fmt.Sprintf("%T", policy)), "a policy made by package bigtable")
}

func joined(name string, join func(...gc.Policy) gc.Policy, policies []bigtable.GCPolicy, depth int) (gc.Policy, error) {
	converted := make([]gc.Policy, len(policies))
	for i, policy := range policies {
		var err error
		if converted[i], err = from(policy, depth); err == nil {
			continue
		}
		if bad, ok := errors.AsType[*invalid.Error](err); ok {
			err = invalid.New(invalid.ErrPolicy, fmt.Sprintf("%s[%d].%s", name, i, bad.Field), bad.Value, bad.Limit)
		}
		return gc.Policy{}, err
	}
	return join(converted...), nil
}
