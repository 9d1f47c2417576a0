package rowkey_test

import (
	"testing"

	"github.com/tidemark-go/tidemark/internal/store/rowkey"
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

// FuzzGroupOf checks that a key is in its group's range, and the range in the tenant's.
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
			t.Errorf("%q of %+v: got group %q of %q, %v", key, g, all, whole, err)
		}
	})
}

func TestCuts(t *testing.T) {
	parts := rowkey.Cuts([]string{"b", "!dataset#x", "acme#", "b", "", "~"})
	all := rowkey.Cuts(nil)
	if len(all) != 1 || len(parts) != 3 || parts[0].Start != all[0].Start || parts[2].Limit != all[0].Limit {
		t.Fatalf("got parts %q of %q", parts, all)
	}
	for i, p := range parts {
		if p.Empty() || i > 0 && p.Start != parts[i-1].Limit {
			t.Errorf("part %d of %q does not begin where the previous one ends", i, parts)
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
		{"dev-01#7", "dev-04#3", 0.2, "dev-01#7"},
		{"dev-01#7", "dev-04#3", 0.3, "dev-02"},
		{"dev-01#7", "dev-04#3", 0.9, "dev-04"},
		{"dev-01#7", "dev-04#3", 1, "dev-04#3"},
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

// TestEntityOf checks that any key of an entity's points, with or without an ID, leads to the range of its rows.
func TestEntityOf(t *testing.T) {
	s := space(t, "acme", "events", 2, 3)
	path := rowkey.Path("a", "b")
	plain, ofPlain := string(s.AppendPoint(nil, path, 7)), 0.0
	event := string(s.WithIdentity(true).AppendEvent(nil, path, 7, "e:1"))
	digits := string(s.WithIdentity(true).AppendEvent(nil, path, 7, "1234567890123456789")) // an ID as long as a time
	want := s.Whole(path)
	for _, key := range []string{plain, event, digits} {
		got, reverse, ok := rowkey.EntityOf(key, key != plain)
		if !ok || got != want || ofPlain != 0 && reverse != ofPlain {
			t.Errorf("EntityOf(%q) = %v, %v, %v, want %v", key, got, reverse, ok, want)
		}
		ofPlain = reverse
	}
	for _, key := range []string{"acme#events#a", "acme#events#a#", "acme!x"} {
		for _, identity := range []bool{false, true} {
			if got, _, ok := rowkey.EntityOf(key, identity); ok {
				t.Errorf("EntityOf(%q, %v) = %v, want none", key, identity, got)
			}
		}
	}
}

// FuzzSplitEvent checks that a key that splits into a point with an ID is encoded to the same bytes again, and that no
// key is valid both with and without an ID.
func FuzzSplitEvent(f *testing.F) {
	f.Add("acme#readings#berlin#roof-7#7456146436854775807#e-1")
	f.Add("acme#readings#12#berlin#roof-7#7456146436854775807#9223372036854775807")
	f.Add("acme#readings#berlin#roof-7#7456146436854775807#")
	f.Fuzz(func(t *testing.T, key string) {
		for _, salts := range []int{0, 16} {
			plain := space(t, "acme", "readings", 2, salts)
			s := plain.WithIdentity(true)
			path, units, id, ok := s.SplitEvent(key)
			if !ok {
				continue
			}
			if again := string(s.AppendEvent(nil, path, units, id)); again != key || s.CheckID(id) != nil {
				t.Fatalf("SplitEvent(%q): got a point with the key %q", key, again)
			}
			if _, _, ok := plain.Split(key); ok {
				t.Fatalf("%q is valid both with and without an ID", key)
			}
			prefix := s.EntityPrefix(key, path)
			if at, same, ok := s.PointTime(key, prefix); !ok || at != units || same != id {
				t.Fatalf("PointTime(%q, %q) = %d, %q, %v", key, prefix, at, same, ok)
			}
			if rng := s.Entity(path, units, units); key < rng.Start || key >= rng.Limit {
				t.Fatalf("%q is outside the range of its time", key)
			}
		}
	})
}
