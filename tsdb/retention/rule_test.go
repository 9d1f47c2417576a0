package retention

import (
	"testing"
	"time"

	"cloud.google.com/go/bigtable"
	"cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/internal/gcrule"
)

func TestRules(t *testing.T) {
	day := 24 * time.Hour
	for _, p := range []gc.Policy{
		gc.Never(), gc.MaxAge(time.Second), gc.MaxAge(106751 * day), gc.MaxVersions(1), gc.Any(gc.MaxAge(day), gc.MaxVersions(3)),
		gc.All(gc.MaxAge(day), gc.MaxVersions(3)), gc.Any(gc.MaxAge(30*day), gc.All(gc.MaxAge(3*day), gc.MaxVersions(100))),
	} {
		rule := ruleOf(gcrule.To(p))
		back, _, err := policyOf(rule, 0)
		if err != nil || !back.Equal(p) {
			t.Errorf("%v is read back as %v, %v", p, back, err)
		}
		if p.Equal(gc.Never()) {
			continue
		}
		if got, want := bigtable.GCRuleToString(rule), gcrule.To(p).String(); got != want {
			t.Errorf("%v is sent as %q, want %q", p, got, want)
		}
	}
}

// TestRulesThatAreNone: rules that the official client would misrepresent are distinguished.
func TestRulesThatAreNone(t *testing.T) {
	age := func(d time.Duration) *adminpb.GcRule {
		return &adminpb.GcRule{Rule: &adminpb.GcRule_MaxAge{MaxAge: durationpb.New(d)}}
	}
	deep := age(time.Hour)
	for range 100 {
		deep = &adminpb.GcRule{Rule: &adminpb.GcRule_Union_{Union: &adminpb.GcRule_Union{Rules: []*adminpb.GcRule{deep}}}}
	}
	for name, rule := range map[string]*adminpb.GcRule{
		"no duration":      {Rule: &adminpb.GcRule_MaxAge{}},
		"a broken one":     {Rule: &adminpb.GcRule_MaxAge{MaxAge: &durationpb.Duration{Seconds: 1, Nanos: -1}}},
		"three centuries":  {Rule: &adminpb.GcRule_MaxAge{MaxAge: &durationpb.Duration{Seconds: 315_576_000_000}}},
		"half a second":    age(time.Second / 2),
		"an age and half":  age(time.Hour + time.Second/2),
		"no versions":      {Rule: &adminpb.GcRule_MaxNumVersions{}},
		"an empty union":   {Rule: &adminpb.GcRule_Union_{Union: &adminpb.GcRule_Union{}}},
		"no intersection":  {Rule: &adminpb.GcRule_Intersection_{}},
		"one of fractions": {Rule: &adminpb.GcRule_Union_{Union: &adminpb.GcRule_Union{Rules: []*adminpb.GcRule{age(time.Hour), age(1)}}}},
		"a deep one":       deep,
	} {
		p, text, err := policyOf(rule, 0)
		if err == nil {
			t.Errorf("%s is read as %v", name, p)
		}
		if text == "" || len(text) > 300 {
			t.Errorf("%s has the text %q", name, text)
		}
	}
	if p, _, err := policyOf(nil, 0); err != nil || !p.Equal(gc.Never()) {
		t.Errorf("a nil rule is read as %v, %v", p, err)
	}
}
