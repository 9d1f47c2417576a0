package rowkey_test

import (
	"strings"
	"testing"

	"github.com/tidemark-go/tidemark/internal/store/rowkey"
)

func TestHeadKeyIsTheDocumentedOne(t *testing.T) {
	for _, tt := range []struct {
		salts int
		parts []string
		want  string
	}{
		{0, []string{"berlin", "roof-7"}, "acme#readings!head#berlin#roof-7#"},
		{16, []string{"berlin", "roof-7"}, "acme#readings!head#12#berlin#roof-7#"},
	} {
		heads := space(t, "acme", "readings", 2, tt.salts).Heads()
		path := rowkey.Path(tt.parts...)
		got := string(heads.AppendEntity(nil, path))
		if got != tt.want {
			t.Errorf("head key of %q = %q, want %q: stored rows would no longer be found", tt.parts, got, tt.want)
		}
		if p, ok := heads.SplitEntity(got); !ok || p != path {
			t.Errorf("SplitEntity(%q) = %q, %v", got, p, ok)
		}
		if !strings.HasPrefix(got, heads.TenantPrefix()) {
			t.Errorf("got head row %q, outside its tenant's rows %q", got, heads.TenantPrefix())
		}
	}
}

// TestHeadsAndPointsAreSeparate checks that no key of points is valid as a head or the reverse, and that no range of
// one space contains keys of the other.
func TestHeadsAndPointsAreSeparate(t *testing.T) {
	for _, salts := range []int{0, 3} {
		points := space(t, "acme", "readings", 2, salts)
		heads := points.Heads()
		for _, a := range hostile {
			for _, b := range hostile {
				path := rowkey.Path(a, b)
				head, point := string(heads.AppendEntity(nil, path)), string(points.AppendPoint(nil, path, 5))
				if got, ok := heads.SplitEntity(head); !ok || got != path {
					t.Fatalf("SplitEntity(%q) = %q, %v", head, got, ok)
				}
				if _, ok := heads.SplitEntity(point); ok {
					t.Fatalf("the point's key %q is valid as a head's", point)
				}
				if _, _, ok := points.Split(head); ok {
					t.Fatalf("the head's key %q is valid as a point's", head)
				}
				inHeads, inPoints := 0, 0
				for i, r := range heads.Under(rowkey.Path(a)) {
					p := points.Under("")[i]
					if head >= r.Start && head < r.Limit {
						inHeads++
					}
					if head >= p.Start && head < p.Limit || point >= r.Start && point < r.Limit {
						inPoints++
					}
				}
				if inHeads != 1 || inPoints != 0 {
					t.Fatalf("head %q: got %d ranges of its prefix, and %d of points, want 1 and 0", head, inHeads, inPoints)
				}
			}
		}
	}
}

func TestSplitEntityRefusesOtherKeys(t *testing.T) {
	plain, salted := space(t, "acme", "readings", 2, 0).Heads(), space(t, "acme", "readings", 2, 16).Heads()
	for _, key := range []string{
		"", "acme#readings!head#", "acme#readings!head#berlin#", "acme#readings!head#berlin#roof-7", "acme#readings!head#berlin#roof-7#x",
		"acme#readings!head#berlin##", "acme#readings!head#berlin#roof-7#x#", "acme2#readings!head#berlin#roof-7#", "acme#readings2!head#berlin#roof-7#",
		"acme#readings!heads#berlin#roof-7#", "acme#readings#berlin#roof-7#", "acme#readings!head#ber%6cin#roof-7#", "acme#readings!head#\xff#roof-7#",
	} {
		if path, ok := plain.SplitEntity(key); ok {
			t.Errorf("SplitEntity(%q) = %q", key, path)
		}
	}
	for _, key := range []string{"acme#readings!head#berlin#roof-7#", "acme#readings!head#11#berlin#roof-7#", "acme#readings!head#99#berlin#roof-7#"} {
		if path, ok := salted.SplitEntity(key); ok {
			t.Errorf("salted: SplitEntity(%q) = %q", key, path)
		}
	}
	if _, ok := (rowkey.Space{}).Heads().SplitEntity("acme#readings!head#berlin#roof-7#"); ok {
		t.Error("the zero space accepts a head row")
	}
}

func FuzzSplitEntity(f *testing.F) {
	f.Add("acme#readings!head#berlin#roof-7#")
	f.Add("acme#readings!head#12#berlin#roof-7#")
	f.Fuzz(func(t *testing.T, key string) {
		for _, salts := range []int{0, 16} {
			s := space(t, "acme", "readings", 2, salts).Heads()
			path, ok := s.SplitEntity(key)
			if ok && string(s.AppendEntity(nil, path)) != key {
				t.Errorf("%q: got the entity %q, which has another key", key, path)
			}
		}
	})
}

// TestHeadsAreCutBetweenEntities checks that the parts of a range of heads contain each head once.
func TestHeadsAreCutBetweenEntities(t *testing.T) {
	for _, salts := range []int{0, 3} {
		heads := space(t, "acme", "readings", 2, salts).Heads()
		var alphabet rowkey.Alphabet
		var paths []string
		for _, a := range hostile {
			for _, b := range hostile {
				paths = append(paths, rowkey.Path(a, b))
				alphabet.Add(rowkey.Path(a, b))
			}
		}
		for _, r := range heads.Under("") {
			last := ""
			for _, path := range paths {
				if key := string(heads.AppendEntity(nil, path)); key >= r.Start && key < r.Limit {
					last = max(last, key)
				}
			}
			parts := heads.Cut(r, last, alphabet, 8)
			if len(parts) < 2 || parts[0].Start != r.Start || parts[len(parts)-1].Limit != r.Limit {
				t.Fatalf("%v: got parts %v", r, parts)
			}
			for i, p := range parts[1:] {
				if p.Start != parts[i].Limit {
					t.Errorf("%v and %v are not adjacent", parts[i], p)
				}
			}
			for _, path := range paths {
				key := string(heads.AppendEntity(nil, path))
				in := 0
				for _, p := range parts {
					if key >= p.Start && key < p.Limit {
						in++
					}
				}
				if want := key >= r.Start && key < r.Limit; in > 1 || (in == 1) != want {
					t.Errorf("%q: got it in %d parts of %v, want 1", key, in, r)
				}
			}
		}
	}
}
