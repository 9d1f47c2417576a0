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
