package rowkey

import (
	"strings"
	"testing"

	"github.com/tidemark-go/tidemark/tenant"
)

// TestTenantRanges checks that each key is in the range of at most one tenant, whatever the tenants' names.
func TestTenantRanges(t *testing.T) {
	names := []string{"a", "a.", "a-", "ab", "A", "a_", "0", "...", "-", "z", "zz", strings.Repeat("z", 64)}
	for _, of := range names {
		id := tenant.MustParse(of)
		for _, rest := range []string{"", "r#x#1", "r!head#x#", "\x00", "\xff\xff", "$", "#"} {
			key := of + "#" + rest
			if got, ok := TenantOf(key); !ok || got != id {
				t.Errorf("TenantOf(%q) = %v, %v", key, got, ok)
			}
			for _, other := range names {
				rng, err := TenantRange(tenant.MustParse(other))
				if err != nil {
					t.Fatal(err)
				}
				if in := key >= rng.Start && key < rng.Limit; in != (other == of) {
					t.Errorf("key %q, range of %s: got contained=%v", key, other, in)
				}
				behind := TenantsAfter(tenant.MustParse(other))
				if in := key >= behind.Start && key < behind.Limit; in != (of > other) {
					t.Errorf("key %q, tenant %s: got after=%v", key, other, in)
				}
			}
			if all := TenantsAfter(tenant.ID{}); key < all.Start || key >= all.Limit {
				t.Errorf("%q: got it outside the range of all tenants", key)
			}
		}
	}
	if _, err := TenantRange(tenant.ID{}); err == nil {
		t.Error("the zero tenant: got a range, want none")
	}
	for _, key := range []string{"", "a", "!erased#a", "#", "a b#", "$#", strings.Repeat("z", 65) + "#"} {
		if id, ok := TenantOf(key); ok {
			t.Errorf("TenantOf(%q) = %v", key, id)
		}
	}
}

// FuzzKindOf checks that a key that KindOf takes apart is in the dataset's space of that kind, and that nothing panics.
func FuzzKindOf(f *testing.F) {
	for _, key := range []string{"a#r#x#1", "a#r!head#x#", "a#r!rollup.hour#00#x#1", "a#!head#", "a#r!#", "a#r", "#", "a##", "a#r!h!h#"} {
		f.Add(key)
	}
	id := tenant.MustParse("a")
	f.Fuzz(func(t *testing.T, key string) {
		dataset, kind, ok := KindOf(key)
		if _, mine := TenantOf(key); !ok || !mine || !strings.HasPrefix(key, "a#") {
			return
		}
		s, err := NewSpace(id, dataset, []string{"x"}, 0)
		if err != nil {
			t.Fatal(err)
		}
		all, part := s.All(), s.Starts()[1]
		if kind != "" {
			reserved, ok := s.Reserved(kind)
			if !ok {
				t.Fatalf("%q: got no space for the kind %q", key, kind)
			}
			all, part = reserved.All(), s.Starts()[0]
		}
		for _, rng := range []Range{all, part} {
			if key < rng.Start || key >= rng.Limit {
				t.Errorf("%q of dataset %q and kind %q: got it outside the range %q", key, dataset, kind, rng)
			}
		}
	})
}

// TestWholeEntity checks that the range of an entity contains all its rows and no others, in the space of points and of
// each kind.
func TestWholeEntity(t *testing.T) {
	for _, salts := range []int{0, 16} {
		points, err := NewSpace(tenant.MustParse("a"), "r", []string{"x", "y"}, salts)
		if err != nil {
			t.Fatal(err)
		}
		rollup, ok := points.Reserved("rollup.hour")
		if !ok {
			t.Fatal("the kind does not exist")
		}
		paths := []string{Path("a", "b"), Path("a", "b#"), Path("a", "bb"), Path("a", "b\x00"), Path("a#b", "b"), Path("a", "b&")}
		for _, s := range []Space{points, rollup, points.Heads()} {
			for _, path := range paths {
				key := string(s.AppendPoint(nil, path, 17))
				for _, other := range paths {
					rng := s.Whole(other)
					if in := key >= rng.Start && key < rng.Limit; in != (path == other) {
						t.Errorf("key %q, range %q: got contained=%v", key, rng, in)
					}
				}
			}
		}
	}
	for _, kind := range []string{"", "a#b", "a!b", "a b", strings.Repeat("x", 65)} {
		s, _ := NewSpace(tenant.MustParse("a"), "r", []string{"x"}, 0)
		if _, ok := s.Reserved(kind); ok {
			t.Errorf("got a space for the invalid kind %q", kind)
		}
	}
}
