package gc

import (
	"errors"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"
)

func TestBigtable(t *testing.T) {
	for _, test := range []struct {
		policy Policy
		want   string
	}{
		{Never(), ""},
		{MaxAge(30 * day), "age() > 30d"},
		{MaxVersions(2), "versions() > 2"},
		{Any(MaxVersions(2), MaxAge(30*day)), "(age() > 30d || versions() > 2)"},
		{All(MaxVersions(2), MaxAge(30*day)), "(age() > 30d && versions() > 2)"},
		{
			Any(MaxAge(30*day), All(MaxVersions(100), MaxAge(3*day)), Never()),
			"(age() > 30d || (age() > 3d && versions() > 100))",
		},
		{MaxAge(-1), ""}, // rejected by Validate; removes nothing
	} {
		if got := test.policy.Bigtable().String(); got != test.want {
			t.Errorf("%v is sent as %q; want %q", test.policy, got, test.want)
		}
	}
}

// Validate checks the limit on bytes with an encoder in this package, because the client does not export its own.
func TestRuleIsWhatTheClientSends(t *testing.T) {
	for _, p := range []Policy{MaxAge(day), MaxVersions(2), All(MaxAge(day), MaxVersions(2)), wide(3)} {
		for _, step := range p.terms {
			if got, want := bigtable.GCRuleToString(step.rule()), step.bigtable().String(); got != want {
				t.Errorf("the size of %v is computed from %q, but %q is sent", p, got, want)
			}
		}
	}
}

// wrapped has the client's policy type at compile time only.
type wrapped struct{ bigtable.GCPolicy }

func TestFromBigtable(t *testing.T) {
	age := bigtable.MaxAgePolicy(time.Hour)
	deep := age
	for range 100 {
		deep = bigtable.UnionPolicy(deep)
	}
	for _, test := range []struct {
		from bigtable.GCPolicy
		want Policy
		err  string
	}{
		{from: nil},
		{from: bigtable.NoGcPolicy()},
		{from: age, want: MaxAge(time.Hour)},
		{from: bigtable.MaxVersionsPolicy(3), want: MaxVersions(3)},
		{from: bigtable.UnionPolicy(age), want: MaxAge(time.Hour)},
		{from: bigtable.IntersectionPolicy(age, bigtable.NoGcPolicy()), want: Never()},
		{
			from: bigtable.UnionPolicy(bigtable.MaxVersionsPolicy(3), bigtable.IntersectionPolicy(bigtable.MaxVersionsPolicy(2), age)),
			want: Any(MaxVersions(3), All(MaxAge(time.Hour), MaxVersions(2))),
		},
		{from: bigtable.UnionPolicy(), err: "any is empty; want at least one policy"},
		{from: bigtable.MaxAgePolicy(0), err: "maxage is 0s; want a positive whole number of seconds"},
		{from: bigtable.IntersectionPolicy(age, nil), err: `all[1].policy is "<nil>"; want a policy made by package bigtable`},
		{from: wrapped{}, err: `policy is "gc.wrapped"; want a policy made by package bigtable`},
		{from: (*bigtable.MaxAgeGCPolicy)(nil), err: `policy is "*bigtable.MaxAgeGCPolicy"; want a policy made by package bigtable`},
	} {
		got, err := FromBigtable(test.from)
		if test.err == "" {
			if err != nil || !got.Equal(test.want) {
				t.Errorf("FromBigtable(%v) = %v, %v; want %v", test.from, got, err, test.want)
			}
			continue
		}
		if err == nil || err.Error() != "gc: invalid retention: "+test.err {
			t.Errorf("FromBigtable(%T) = %v, %v; want %v", test.from, got, err, test.err)
		}
	}
	if _, err := FromBigtable(deep); !errors.Is(err, ErrInvalid) {
		t.Errorf("a policy nested 100 deep: %v, want an error about its depth", err)
	}
}
