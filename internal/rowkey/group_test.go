package rowkey_test

import (
	"testing"

	"github.com/tidemark-go/tidemark/internal/rowkey"
)

func TestGroupOf(t *testing.T) {
	for key, want := range map[string]rowkey.Range{
		"acme#readings#berlin#1":        {Start: "acme#readings#", Limit: "acme#readings$"},
		"acme#readings!head#berlin#":    {Start: "acme#readings!head#", Limit: "acme#readings!head$"},
		"acme#readings!rollup.h#x#1":    {Start: "acme#readings!rollup.h#", Limit: "acme#readings!rollup.h$"},
		"acme#readings":                 {},
		"acme":                          {},
		"!dataset#readings":             {},
		"acme##x":                       {},
		"acme#read ings#x":              {},
		"acme#readings!#berlin#1":       {},
		"another program's row#with#it": {},
	} {
		g, all, ok := rowkey.GroupOf(key)
		if all != want || ok != (want != rowkey.Range{}) || ok && (g.Tenant.String() != "acme" || g.Dataset != "readings") {
			t.Errorf("GroupOf(%q) = %+v, %q, %v; want %q", key, g, all, ok, want)
		}
	}
}

// FuzzGroupOf: a key of a group lies in the group's range, and the range in its tenant's.
func FuzzGroupOf(f *testing.F) {
	f.Add("acme#readings!rollup.h#x#1")
	f.Add("acme#readings#berlin#1")
	f.Fuzz(func(t *testing.T, key string) {
		g, all, ok := rowkey.GroupOf(key)
		if !ok {
			return
		}
		whole, err := rowkey.TenantRange(g.Tenant)
		if err != nil || !in(all, key) || all.Start < whole.Start || all.Limit > whole.Limit {
			t.Errorf("%q of %+v is in %q of %q, %v", key, g, all, whole, err)
		}
	})
}

func TestCuts(t *testing.T) {
	parts := rowkey.Cuts([]string{"b", "!dataset#x", "acme#", "b", "", "~"})
	all := rowkey.Cuts(nil)
	if len(all) != 1 || len(parts) != 3 || parts[0].Start != all[0].Start || parts[2].Limit != all[0].Limit {
		t.Fatalf("%q of %q", parts, all)
	}
	for i, p := range parts {
		if p.Empty() || i > 0 && p.Start != parts[i-1].Limit {
			t.Errorf("part %d of %q does not follow on the one before it", i, parts)
		}
	}
}

func TestBetween(t *testing.T) {
	for _, tt := range []struct {
		low, high string
		share     float64
		want      string
	}{
		{"a#b#1000", "a#b#3000", 0.5, "a#b#2000"},
		{"a#b#1000", "a#b#3000", 0.25, "a#b#1500"},
		{"a#b#7456146436854775807", "a#b#7456146437854775807", 0.5, "a#b#7456146437354775807"},
		{"a#b", "a#d", 0.5, "a#c\x00\x00\x00"},
		{"a#b", "a#b", 0.5, "a#b"},
		{"b", "a", 0.5, "b"},
	} {
		if got := rowkey.Between(tt.low, tt.high, tt.share); got != tt.want {
			t.Errorf("Between(%q, %q, %v) = %q, want %q", tt.low, tt.high, tt.share, got, tt.want)
		}
	}
}

func FuzzBetween(f *testing.F) {
	f.Add("a#b#1000", "a#b#3000", 0.5)
	f.Add("a#b#1", "a#b$", 0.9)
	f.Fuzz(func(t *testing.T, low, high string, share float64) {
		if low >= high || !(share >= 0 && share <= 1) {
			return
		}
		if key := rowkey.Between(low, high, share); key < low || key > high {
			t.Errorf("%q is not between %q and %q", key, low, high)
		}
	})
}
