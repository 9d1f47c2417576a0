package gc

import (
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/internal/invalid"
)

const day = 24 * time.Hour

// wide returns a policy of n rules that all have an effect.
func wide(n int) Policy {
	var rules []Policy
	for i := range n {
		rules = append(rules, All(MaxAge(time.Duration(1000+i)*day), MaxVersions(1000-i)))
	}
	return Any(rules...)
}

func TestValidate(t *testing.T) {
	for _, test := range []struct {
		policy Policy
		want   string // the error; "" means none
	}{
		{Policy{}, ""},
		{MaxAge(time.Second), ""},
		{MaxAge(90 * day), ""},
		{MaxVersions(1), ""},
		{MaxVersions(math.MaxInt32), ""},
		{All(Never()), ""},
		{wide(27), ""},
		{MaxAge(0), "gc: invalid retention: maxage is 0s; want a positive whole number of seconds"},
		{MaxAge(-day), "gc: invalid retention: maxage is -24h0m0s; want a positive whole number of seconds"},
		{MaxAge(1500 * time.Millisecond), "gc: invalid retention: maxage is 1.5s; want a positive whole number of seconds"},
		{MaxVersions(0), "gc: invalid retention: maxversions is 0; want 1 to 2147483647"},
		{MaxVersions(-1), "gc: invalid retention: maxversions is -1; want 1 to 2147483647"},
		{Any(), "gc: invalid retention: any is empty; want at least one policy"},
		{All(), "gc: invalid retention: all is empty; want at least one policy"},
		{
			Any(MaxAge(day), All(MaxAge(2*day), MaxVersions(0))),
			"gc: invalid retention: any[1].all[1].maxversions is 0; want 1 to 2147483647",
		},
		{All(Never(), MaxAge(0)), "gc: invalid retention: all[1].maxage is 0s; want a positive whole number of seconds"},
		{wide(28), "gc: invalid retention: policy is 507 bytes long; want at most 500 bytes in the service's encoding"},
	} {
		err := test.policy.Validate()
		if test.want == "" {
			if err != nil {
				t.Errorf("%v: Validate: %v, want nil", test.policy, err)
			}
			continue
		}
		if err == nil || err.Error() != test.want {
			t.Errorf("%v.Validate() = %v; want %v", test.policy, err, test.want)
		}
		if _, ok := errors.AsType[*invalid.Error](err); !ok || !errors.Is(err, invalid.ErrPolicy) {
			t.Errorf("%v.Validate() = %v, want ErrInvalid with the field", test.policy, err)
		}
		if _, err := test.policy.MarshalText(); !errors.Is(err, invalid.ErrPolicy) {
			t.Errorf("MarshalText of %v: %v, want an error", test.policy, err)
		}
		if _, _, err := test.policy.PointAge(); !errors.Is(err, invalid.ErrPolicy) {
			t.Errorf("PointAge of %v: %v, want an error", test.policy, err)
		}
	}
}

func TestEqual(t *testing.T) {
	equal := [][]Policy{
		{Never(), {}, All(Never(), MaxAge(day)), Any(Never()), All(MaxAge(day), Any(Never(), Never()))},
		{MaxAge(day), Any(MaxAge(day), MaxAge(2*day)), All(MaxAge(day), MaxAge(time.Hour)), Any(MaxAge(day), Never())},
		{MaxAge(7 * day), Any(MaxAge(7*day), All(MaxAge(30*day), MaxVersions(3)))},
		{
			Any(MaxAge(day), MaxVersions(2)), Any(MaxVersions(2), MaxAge(day)),
			Any(Any(MaxVersions(2)), All(Any(MaxAge(day), MaxVersions(2)), Any(MaxVersions(2), MaxAge(day)))),
		},
		{All(MaxAge(day), MaxVersions(2)), All(MaxVersions(2), All(MaxVersions(1), MaxAge(day)))},
		{MaxVersions(2)},
		{MaxVersions(3), All(MaxVersions(3), MaxVersions(2))},
		{MaxAge(0), MaxAge(0)},
		{MaxAge(-1), MaxAge(-1)},
	}
	for i, same := range equal {
		for j, others := range equal {
			for _, p := range same {
				for _, q := range others {
					if got := p.Equal(q); got != (i == j) {
						t.Errorf("%v equals %v: %v", p, q, got)
					}
				}
			}
		}
	}
}

// A policy must not share memory with the policies that it joins.
func TestPoliciesShareNothing(t *testing.T) {
	p := Any(MaxAge(day), MaxVersions(2))
	before := p.String()
	_ = Any(p, MaxAge(time.Hour))
	_ = All(p, MaxVersions(9))
	_ = All(p)
	if got := p.String(); got != before {
		t.Errorf("a policy was %q before it was joined to others, and is now %q", before, got)
	}
}

func TestText(t *testing.T) {
	for _, test := range []struct{ text, want string }{
		{"never", "never"},
		{" never\n", "never"},
		{"maxage=30d", "maxage=30d"},
		{"maxage = 36h", "maxage=36h"},
		{"maxage=24h", "maxage=1d"},
		{"maxage=90m", "maxage=90m"},
		{"maxage=61s", "maxage=61s"},
		{"maxage=2000ms", "maxage=2s"},
		{"maxage=60000000us", "maxage=1m"},
		{"maxage=106751d", "maxage=106751d"},
		{"maxversions=2", "maxversions=2"},
		{"maxversions=2 || maxage=30d", "maxage=30d || maxversions=2"},
		{"maxversions=7||maxage=8h", "maxage=8h || maxversions=7"},
		{"maxversions=2 and maxage=1h", "maxage=1h && maxversions=2"},
		{"maxversions=2 or maxage=1h", "maxage=1h || maxversions=2"},
		{"(((maxversions=2 and (maxage=1h))))", "maxage=1h && maxversions=2"},
		{"maxage=30d || (maxage=3d && maxversions=100)", "maxage=30d || (maxage=3d && maxversions=100)"},
		// Evaluated from the left, as in cbt: (30d || 3d) && 100, which is 3d && 100.
		{"maxage=30d || maxage=3d && maxversions=100", "maxage=3d && maxversions=100"},
		{"maxage=3d && maxversions=100 || maxage=30d", "maxage=30d || (maxage=3d && maxversions=100)"},
	} {
		p, err := Parse(test.text)
		if err != nil || p.String() != test.want {
			t.Errorf("Parse(%q) = %q, %v; want %q", test.text, p, err, test.want)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for _, test := range []struct{ text, want string }{
		{"", "policy text at byte 0 is the end; want maxage=, maxversions= or ("},
		{"maxage", "policy text at byte 6 is the end; want = after maxage"},
		{"maxage=", "policy text at byte 7 is the end; want a whole number with a unit (d, h, m, s, ms or us), less than 106752d in all"},
		{"maxage=5", `policy text at byte 7 is "5"; want a whole number with a unit (d, h, m, s, ms or us), less than 106752d in all`},
		{"maxage=14mo", `policy text at byte 7 is "14mo"; want a whole number with a unit (d, h, m, s, ms or us), less than 106752d in all`},
		{"maxage=106752d", `policy text at byte 7 is "106752d"; want a whole number with a unit (d, h, m, s, ms or us), less than 106752d in all`},
		{"maxage=3.5h", `policy text at byte 7 is "3"; want a whole number with a unit (d, h, m, s, ms or us), less than 106752d in all`},
		{"maxage=0d", "maxage is 0s; want a positive whole number of seconds"},
		{"maxage=10ms", "maxage is 10ms; want a positive whole number of seconds"},
		{"maxversions=0", "maxversions is 0; want 1 to 2147483647"},
		{"maxversions=1h", `policy text at byte 12 is "1h"; want a whole number from 1 to 2147483647`},
		{"maxversions=2147483648", `policy text at byte 12 is "2147483648"; want a whole number from 1 to 2147483647`},
		{"maxage=1d & maxage=2d", `policy text at byte 10 is "&"; want &&, || or the end`},
		{"maxage=1d maxage=2d", `policy text at byte 10 is "maxage"; want &&, || or the end`},
		{"maxage=1d &&", "policy text at byte 12 is the end; want maxage=, maxversions= or ("},
		{"(maxage=1d", "policy text at byte 10 is the end; want &&, || or )"},
		{"maxage=1d)", `policy text at byte 9 is ")"; want &&, || or the end`},
		{"maxage=1d || never", `policy text at byte 13 is "never"; want maxage=, maxversions= or (, as never stands alone`},
		{"MaxAge=1d", `policy text at byte 0 is "MaxAge"; want maxage=, maxversions= or (`},
		{MaxAge(0).String(), `policy text at byte 0 is "invalid"; want maxage=, maxversions= or (`},
		{strings.Repeat("(", 65), `policy text at byte 64 is "("; want at most 64 levels of parentheses`},
	} {
		p, err := Parse(test.text)
		if want := "gc: invalid retention: " + test.want; err == nil || err.Error() != want || !errors.Is(err, invalid.ErrPolicy) {
			t.Errorf("Parse(%q) = %v, %v; want %v", test.text, p, err, want)
		}
	}
	if _, err := Parse(strings.Repeat(" ", maxText) + "never"); !errors.Is(err, invalid.ErrPolicy) {
		t.Errorf("Parse of %d bytes: %v, want an error about the length", maxText+5, err)
	}
}

func TestJSON(t *testing.T) {
	want := Class{Name: "d30", Policy: Any(MaxAge(30*day), MaxVersions(2))}
	data, err := json.Marshal(want)
	if err != nil || string(data) != `{"Name":"d30","Policy":"maxage=30d || maxversions=2"}` {
		t.Fatalf("json.Marshal(%v) = %s, %v", want, data, err)
	}
	var got Class
	if err := json.Unmarshal(data, &got); err != nil || got.Name != want.Name || !got.Policy.Equal(want.Policy) {
		t.Errorf("json.Unmarshal(%s) = %v, %v", data, got, err)
	}
	if err := json.Unmarshal([]byte(`{"Policy":"maxage"}`), &got); !errors.Is(err, invalid.ErrPolicy) || got.Name != want.Name || !got.Policy.Equal(want.Policy) {
		t.Errorf("after a failed UnmarshalText the policy is %v (error %v), want it unchanged", got, err)
	}
}
