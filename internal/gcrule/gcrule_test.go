package gcrule

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"
	"cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/internal/invalid"
)

func TestTo(t *testing.T) {
	for _, test := range []struct {
		policy gc.Policy
		want   string
	}{
		{gc.Never(), ""},
		{gc.MaxAge(30 * day), "age() > 30d"},
		{gc.MaxVersions(2), "versions() > 2"},
		{gc.Any(gc.MaxVersions(2), gc.MaxAge(30*day)), "(age() > 30d || versions() > 2)"},
		{gc.All(gc.MaxVersions(2), gc.MaxAge(30*day)), "(age() > 30d && versions() > 2)"},
		{
			gc.Any(gc.MaxAge(30*day), gc.All(gc.MaxVersions(100), gc.MaxAge(3*day)), gc.Never()),
			"(age() > 30d || (age() > 3d && versions() > 100))",
		},
		{gc.MaxAge(-1), ""}, // rejected by Validate; removes nothing
	} {
		if got := To(test.policy).String(); got != test.want {
			t.Errorf("%v is sent as %q; want %q", test.policy, got, test.want)
		}
	}
}

// TestSizeIsWhatTheServiceCounts: package gc computes the size of an encoded rule itself, because the client's
// package is large.
func TestSizeIsWhatTheServiceCounts(t *testing.T) {
	refused := 0
	for n := 1; n < 60; n++ {
		terms := make([]gc.Policy, n)
		for i := range terms {
			terms[i] = gc.All(gc.MaxAge(time.Duration(n-i)*time.Duration(1+n*n*n)*time.Minute), gc.MaxVersions(i*i*n+1))
		}
		for _, p := range []gc.Policy{gc.Any(terms...), gc.Any(append(terms, gc.MaxAge(100*365*day))...), terms[0], gc.MaxVersions(n * n * n), gc.MaxAge(time.Duration(n) * day)} {
			size := proto.Size(ruleOf(To(p)))
			if back, err := From(To(p)); size <= 500 && (err != nil || !back.Equal(p)) {
				t.Fatalf("%v is read back as %v, %v; plans would always see a change", p, back, err)
			}
			switch bad, ok := errors.AsType[*invalid.Error](p.Validate()); {
			case ok && (size <= 500 || bad.Value != fmt.Sprintf("%d bytes long", size)):
				t.Fatalf("%v is refused with %q; it has %d bytes", p, bad.Value, size)
			case !ok && size > 500:
				t.Fatalf("%v has %d bytes and is not refused", p, size)
			case ok:
				refused++
			}
		}
	}
	if refused < 20 {
		t.Errorf("%d policies are too large: too few to test anything", refused)
	}
}

// ruleOf returns a policy in the service's encoding. The client does not export its own conversion.
func ruleOf(policy bigtable.GCPolicy) *adminpb.GcRule {
	all := func(policies []bigtable.GCPolicy) (rules []*adminpb.GcRule) {
		for _, p := range policies {
			rules = append(rules, ruleOf(p))
		}
		return rules
	}
	switch p := policy.(type) {
	case bigtable.MaxAgeGCPolicy:
		return &adminpb.GcRule{Rule: &adminpb.GcRule_MaxAge{MaxAge: durationpb.New(time.Duration(p))}}
	case bigtable.MaxVersionsGCPolicy:
		return &adminpb.GcRule{Rule: &adminpb.GcRule_MaxNumVersions{MaxNumVersions: int32(p)}}
	case bigtable.UnionGCPolicy:
		return &adminpb.GcRule{Rule: &adminpb.GcRule_Union_{Union: &adminpb.GcRule_Union{Rules: all(p.Children)}}}
	case bigtable.IntersectionGCPolicy:
		return &adminpb.GcRule{Rule: &adminpb.GcRule_Intersection_{Intersection: &adminpb.GcRule_Intersection{Rules: all(p.Children)}}}
	}
	return &adminpb.GcRule{}
}

const day = 24 * time.Hour

// wrapped has the client's policy type at compile time only.
type wrapped struct{ bigtable.GCPolicy }

func TestFrom(t *testing.T) {
	age := bigtable.MaxAgePolicy(time.Hour)
	deep := age
	for range 100 {
		deep = bigtable.UnionPolicy(deep)
	}
	for _, test := range []struct {
		from bigtable.GCPolicy
		want gc.Policy
		err  string
	}{
		{from: nil},
		{from: bigtable.NoGcPolicy()},
		{from: age, want: gc.MaxAge(time.Hour)},
		{from: bigtable.MaxVersionsPolicy(3), want: gc.MaxVersions(3)},
		{from: bigtable.UnionPolicy(age), want: gc.MaxAge(time.Hour)},
		{from: bigtable.IntersectionPolicy(age, bigtable.NoGcPolicy()), want: gc.Never()},
		{
			from: bigtable.UnionPolicy(bigtable.MaxVersionsPolicy(3), bigtable.IntersectionPolicy(bigtable.MaxVersionsPolicy(2), age)),
			want: gc.Any(gc.MaxVersions(3), gc.All(gc.MaxAge(time.Hour), gc.MaxVersions(2))),
		},
		{from: bigtable.UnionPolicy(), err: "any is empty; want at least one policy"},
		{from: bigtable.MaxAgePolicy(0), err: "maxage is 0s; want a positive whole number of seconds"},
		{from: bigtable.IntersectionPolicy(age, nil), err: `all[1].policy is "<nil>"; want a policy made by package bigtable`},
		{from: wrapped{}, err: `policy is "gcrule.wrapped"; want a policy made by package bigtable`},
		{from: (*bigtable.MaxAgeGCPolicy)(nil), err: `policy is "*bigtable.MaxAgeGCPolicy"; want a policy made by package bigtable`},
	} {
		got, err := From(test.from)
		if test.err == "" {
			if err != nil || !got.Equal(test.want) {
				t.Errorf("From(%v) = %v, %v; want %v", test.from, got, err, test.want)
			}
			continue
		}
		if err == nil || err.Error() != "gc: invalid retention: "+test.err {
			t.Errorf("From(%T) = %v, %v; want %v", test.from, got, err, test.err)
		}
	}
	if _, err := From(deep); !errors.Is(err, invalid.ErrPolicy) {
		t.Errorf("a policy nested 100 deep: %v, want an error about its depth", err)
	}
}

// Each policy that has a text is read back from the client's type as it was.
func FuzzTo(f *testing.F) {
	for _, seed := range []string{
		"never", "maxage=30d", "maxversions=2", "maxage=30d || (maxage=3d && maxversions=100)", "maxage=5h or maxversions=7 or maxage=6h and maxversions=3",
		"maxage=1000ms and maxversions=2 or maxage=1s", "maxage=106751d", "maxversions=2147483647",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := gc.Parse(text)
		if err != nil {
			return
		}
		if back, err := From(To(p)); err != nil || !back.Equal(p) {
			t.Errorf("%v is read back as %v, %v; plans would always see a change", p, back, err)
		}
	})
}
