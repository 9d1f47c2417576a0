package retention

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"cloud.google.com/go/bigtable"
	"cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/internal/invalid"
)

// maxNesting bounds the recursion over rules. The service's limit of 500 bytes is reached first.
const maxNesting = 64

// policyOf converts a rule of the service to a policy, and to text, also if package gc cannot express it. The official
// client truncates ages to whole seconds, so its result may differ from the table's policy.
func policyOf(r *adminpb.GcRule, depth int) (p gc.Policy, text string, err error) {
	if depth > maxNesting {
		return p, "(...)", invalid.New(invalid.ErrPolicy, "policy", fmt.Sprintf("nested more than %d deep", maxNesting), "a policy with less nesting")
	}
	join, sign, rules := gc.Any, " || ", []*adminpb.GcRule(nil)
	switch rule := r.GetRule().(type) {
	case nil:
		return gc.Never(), "never", nil
	case *adminpb.GcRule_MaxAge:
		if rule.MaxAge.CheckValid() != nil {
			text = fmt.Sprintf("maxage=%ds %dns", rule.MaxAge.GetSeconds(), rule.MaxAge.GetNanos())
			return p, text, invalid.New(invalid.ErrPolicy, "maxage", rule.MaxAge.String(), "a duration")
		}
		p = gc.MaxAge(rule.MaxAge.AsDuration())
		return p, "maxage=" + rule.MaxAge.AsDuration().String(), p.Validate()
	case *adminpb.GcRule_MaxNumVersions:
		p = gc.MaxVersions(int(rule.MaxNumVersions))
		return p, fmt.Sprintf("maxversions=%d", rule.MaxNumVersions), p.Validate()
	case *adminpb.GcRule_Union_:
		rules = rule.Union.GetRules()
	case *adminpb.GcRule_Intersection_:
		join, sign, rules = gc.All, " && ", rule.Intersection.GetRules()
	default:
		text = fmt.Sprintf("%T", rule)
		return p, text, invalid.New(invalid.ErrPolicy, "policy", text, "a rule that this version knows")
	}
	policies, texts := make([]gc.Policy, len(rules)), make([]string, len(rules))
	for i, sub := range rules {
		var bad error
		policies[i], texts[i], bad = policyOf(sub, depth+1)
		err = cmp.Or(err, bad)
	}
	p = join(policies...)
	return p, "(" + strings.Join(texts, sign) + ")", cmp.Or(err, p.Validate())
}

// ageOf returns the age at which a rule of the service removes a cell that has no newer cells in its column, as those
// of points. An unknown rule may have removed everything. If bounded is false, the rule removes no such cell.
func ageOf(r *adminpb.GcRule, depth int) (age time.Duration, bounded bool) {
	if depth > maxNesting {
		return 0, true
	}
	switch rule := r.GetRule().(type) {
	case nil, *adminpb.GcRule_MaxNumVersions:
		return 0, false
	case *adminpb.GcRule_MaxAge:
		return max(0, rule.MaxAge.AsDuration()), true
	case *adminpb.GcRule_Union_:
		for _, sub := range rule.Union.GetRules() {
			if a, ok := ageOf(sub, depth+1); ok && (!bounded || a < age) {
				age, bounded = a, true
			}
		}
		return age, bounded
	case *adminpb.GcRule_Intersection_:
		for _, sub := range rule.Intersection.GetRules() {
			a, ok := ageOf(sub, depth+1)
			if !ok {
				return 0, false
			}
			age, bounded = max(age, a), true
		}
		return age, bounded
	}
	return 0, true
}

// ruleOf converts a valid policy to the service's form. The official client does not export its own conversion.
func ruleOf(p bigtable.GCPolicy) *adminpb.GcRule {
	switch p := p.(type) {
	case bigtable.MaxAgeGCPolicy:
		age := durationpb.Duration{Seconds: int64(p) / 1e9, Nanos: int32(int64(p) % 1e9)}
		return &adminpb.GcRule{Rule: &adminpb.GcRule_MaxAge{MaxAge: &age}}
	case bigtable.MaxVersionsGCPolicy:
		return &adminpb.GcRule{Rule: &adminpb.GcRule_MaxNumVersions{MaxNumVersions: int32(p)}}
	case bigtable.UnionGCPolicy:
		return &adminpb.GcRule{Rule: &adminpb.GcRule_Union_{Union: &adminpb.GcRule_Union{Rules: rulesOf(p.Children)}}}
	case bigtable.IntersectionGCPolicy:
		return &adminpb.GcRule{Rule: &adminpb.GcRule_Intersection_{Intersection: &adminpb.GcRule_Intersection{Rules: rulesOf(p.Children)}}}
	}
	return &adminpb.GcRule{}
}

func rulesOf(policies []bigtable.GCPolicy) []*adminpb.GcRule {
	out := make([]*adminpb.GcRule, len(policies))
	for i, p := range policies {
		out[i] = ruleOf(p)
	}
	return out
}

// typeOf converts the type of a family to the service's form; nil is none.
func typeOf(t bigtable.Type) (*adminpb.Type, error) {
	if t == nil {
		return nil, nil
	}
	text, err := bigtable.MarshalJSON(t)
	if err != nil {
		return nil, err
	}
	out := &adminpb.Type{}
	return out, protojson.Unmarshal(text, out)
}

// kindOf returns the kind of an aggregate family's cells, to compare two states of a table; empty for other families.
func kindOf(t bigtable.Type) string {
	if a, ok := t.(bigtable.AggregateType); ok {
		return fmt.Sprintf(" of %T of %T", a.Aggregator, a.Input)
	}
	return ""
}
