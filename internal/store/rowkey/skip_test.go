package rowkey_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-go/tidemark/internal/store/rowkey"
)

// TestPastSkipsOneEntity checks that Past skips all keys of one entity, and none of any other.
func TestPastSkipsOneEntity(t *testing.T) {
	for _, salts := range []int{0, 3} {
		s := space(t, "acme", "readings", 2, salts)
		for _, a := range hostile {
			path := rowkey.Path("berlin", a)
			for _, r := range s.Under("") {
				if !in(r, string(s.AppendPoint(nil, path, 0))) {
					continue
				}
				rest := s.Past(r, path)
				for _, b := range hostile {
					other := rowkey.Path("berlin", b)
					for _, units := range []int64{0, 1<<63 - 1} {
						key := string(s.AppendPoint(nil, other, units))
						if want := in(r, key) && other > path; in(rest, key) != want {
							t.Fatalf("past %q: got the key of %q in the rest: %v, want %v", path, other, in(rest, key), want)
						}
					}
				}
				if again := s.Past(rest, path); again != rest {
					t.Errorf("past %q twice: got %v, then %v", path, rest, again)
				}
			}
		}
	}
}

// checkCut fails if the ranges are not consecutive parts of r, or if one of them starts within an entity.
func checkCut(t *testing.T, s rowkey.Space, r rowkey.Range, cut []rowkey.Range, paths []string) {
	t.Helper()
	at := r.Start
	for _, c := range cut {
		if c.Start != at || c.Empty() {
			t.Fatalf("cut of %q: %q", r, cut)
		}
		at = c.Limit
	}
	if at != r.Limit {
		t.Fatalf("cut of %q: %q", r, cut)
	}
	for _, path := range paths {
		first, last := string(s.AppendPoint(nil, path, 1<<63-1)), string(s.AppendPoint(nil, path, 0))
		for _, c := range cut[1:] {
			if first < c.Start && c.Start <= last {
				t.Fatalf("cut of %q: got %q, which splits the entity %q", r, cut, path)
			}
		}
	}
}

// TestCutsAreEven checks that entities named by numbers, by random IDs or by two fields are spread over the cuts.
func TestCutsAreEven(t *testing.T) {
	hex := func(i int) string { return fmt.Sprintf("%08x", uint32(i)*2654435761) }
	for name, tt := range map[string]struct {
		parts func(i int) []string
		most  int // of 1000 entities in one of 8 ranges
	}{
		"numbers": {func(i int) []string { return []string{"berlin", fmt.Sprintf("truck_%d", i)} }, 250},
		"padded":  {func(i int) []string { return []string{"berlin", fmt.Sprintf("truck_%06d", i)} }, 250},
		"random":  {func(i int) []string { return []string{"berlin", hex(i)} }, 200},
		"fields":  {func(i int) []string { return []string{"site-" + hex(i)[:1], "d-" + hex(i)} }, 250},
	} {
		for _, salts := range []int{0, 2} {
			s := space(t, "acme", "readings", 2, salts)
			var paths []string
			for i := range 1000 {
				paths = append(paths, rowkey.Path(tt.parts(i)...))
			}
			slices.Sort(paths)
			var alphabet rowkey.Alphabet
			for _, p := range paths[:32] {
				alphabet.Add(p)
			}
			for _, r := range s.Under("") {
				mine := slices.DeleteFunc(slices.Clone(paths), func(p string) bool { return !in(r, string(s.AppendPoint(nil, p, 0))) })
				rest := s.Past(r, mine[0])
				cut := s.Cut(rest, string(s.AppendPoint(nil, mine[len(mine)-1], 0)), alphabet, 8)
				checkCut(t, s, rest, cut, mine)
				most := 0
				for _, c := range cut {
					n := 0
					for _, p := range mine {
						if in(c, string(s.AppendPoint(nil, p, 0))) {
							n++
						}
					}
					most = max(most, n)
				}
				if most > tt.most*len(mine)/1000 {
					t.Errorf("%s, %d salts: got %d of %d entities in one of %d ranges: %q", name, salts, most, len(mine), len(cut), cut)
				}
			}
		}
	}
}

// FuzzCut checks that the cuts are consecutive parts of the range with whole entities, whatever the texts.
func FuzzCut(f *testing.F) {
	f.Add("berlin", "roof-7", "berlin", "roof-9", "x", uint8(8), false)
	f.Add("a#", "#", "a#", "%", "\xff", uint8(3), true)
	f.Add("", "", "", "", "", uint8(255), false)
	f.Fuzz(func(t *testing.T, a, b, c, d, letters string, n uint8, all bool) {
		s := space(t, "acme", "readings", 2, 0)
		paths := []string{rowkey.Path(a, b), rowkey.Path(c, d), rowkey.Path(a, d), rowkey.Path(c, b)}
		for _, p := range paths {
			if s.CheckPath(p) != nil {
				return
			}
		}
		r := s.Under("")[0]
		if !all {
			r = s.Under(rowkey.Path(a))[0]
		}
		if first := string(s.AppendPoint(nil, paths[0], 5)); in(r, first) {
			r = s.Past(r, paths[0])
		}
		var alphabet rowkey.Alphabet
		alphabet.Add(letters)
		for _, last := range []string{"", string(s.AppendPoint(nil, paths[1], 7)), letters} {
			cut := s.Cut(r, last, alphabet, int(n))
			checkCut(t, s, r, cut, paths)
			for _, c := range cut {
				if !strings.HasPrefix(c.Start, "acme#readings#") {
					t.Fatalf("got %q, outside the tenant's rows", c)
				}
			}
			if len(cut) > max(1, int(n)) {
				t.Fatalf("got %d ranges, want at most %d", len(cut), n)
			}
		}
	})
}

// TestCutsKeepEntitiesWhole checks that, if names are so short that a cut falls among the times of one entity, it moves
// before all of them.
func TestCutsKeepEntitiesWhole(t *testing.T) {
	s := space(t, "acme", "readings", 2, 0)
	r := s.Past(s.Under("x")[0], "x#a")
	var alphabet rowkey.Alphabet
	alphabet.Add("abcdef#0123456789")
	cut := s.Cut(r, string(s.AppendPoint(nil, "x#f", 1e18)), alphabet, 50)
	checkCut(t, s, r, cut, []string{"x#a", "x#b", "x#c", "x#d", "x#e", "x#f"})
	if len(cut) < 6 {
		t.Errorf("got cuts %q", cut)
	}
}

// TestThroughLeavesOutOlderPoints checks that the ranges of known entities hold each key of a range but those of their
// older points, and in the order of the entities.
func TestThroughLeavesOutOlderPoints(t *testing.T) {
	for _, salts := range []int{0, 3} {
		s := space(t, "acme", "readings", 2, salts)
		for _, r := range s.Under("") {
			var known []rowkey.Known
			newest := map[string]int64{}
			for i, name := range hostile {
				path := rowkey.Path("berlin", name)
				prefix := string(s.AppendEntity(nil, path))
				if i%3 > 0 && in(r, prefix) {
					newest[path] = []int64{0, 1, 1 << 40, 1<<63 - 1}[i%4]
					known = append(known, rowkey.Known{Prefix: prefix, Newest: newest[path]})
				}
			}
			slices.SortFunc(known, func(a, b rowkey.Known) int { return strings.Compare(a.Prefix, b.Prefix) })
			ranges := r.Through(known)
			if len(ranges) != len(known)+1 {
				t.Fatalf("%d ranges of %d entities", len(ranges), len(known))
			}
			for _, name := range hostile {
				path := rowkey.Path("berlin", name)
				for _, units := range []int64{0, 1, 2, 1 << 40, 1<<63 - 1} {
					key := string(s.AppendPoint(nil, path, units))
					last, isKnown := newest[path]
					want, got := in(r, key) && (!isKnown || units >= last), 0
					for i, part := range ranges {
						if in(part, key) {
							got++
							if isKnown && known[i].Prefix != string(s.AppendEntity(nil, path)) {
								t.Errorf("%q at %d is in the range of another entity", path, units)
							}
						}
					}
					if got > 1 || want != (got == 1) {
						t.Errorf("%q at %d is in %d ranges, want %v", path, units, got, want)
					}
				}
			}
		}
	}
}
