package rowkey_test

import (
	"strings"
	"testing"

	"github.com/tidemark-go/tidemark/internal/store/rowkey"
)

// TestIDsAreUnique checks that no two entities share an ID, whatever their tenants and datasets.
func TestIDsAreUnique(t *testing.T) {
	seen := map[rowkey.ID]string{}
	for _, tenant := range []string{"a", "ab", "acme", "acme2", "acme.readings"} {
		for _, dataset := range []string{"r", "readings", "readings2"} {
			for _, salts := range []int{0, 3, 17} {
				s := space(t, tenant, dataset, 2, salts)
				for _, a := range hostile {
					for _, b := range hostile {
						path := rowkey.Path(a, b)
						if s.CheckPath(path) != nil {
							continue
						}
						id := s.ID(path)
						name := strings.Join([]string{tenant, dataset, string(rune('0' + salts)), path}, "|")
						if other, ok := seen[id]; ok && other != name {
							t.Fatalf("got the same ID for %q and %q", name, other)
						}
						seen[id] = name
						if id.Path() != path || id.Clone() != id || id.Len() != len(tenant)+len(dataset)+2+len(path) {
							t.Fatalf("%q: got ID %v", name, id)
						}
						first := rowkey.Path(a)
						if !id.Below(s, "") || !id.Below(s, first) || id.Below(s, rowkey.Path(a+"x")) || len(first) > 1 && id.Below(s, first[:len(first)-1]) {
							t.Fatalf("%q: got Below=false for one of its prefixes, or true for another", name)
						}
					}
				}
			}
		}
	}
	id := space(t, "acme", "readings", 2, 0).ID("b#r")
	for _, other := range []rowkey.Space{space(t, "acme2", "readings", 2, 0), space(t, "acm", "readings", 2, 0), space(t, "acme", "readings2", 2, 0), space(t, "acme", "readings", 2, 3)} {
		if id.Below(other, "") || id.Below(other, "b") {
			t.Errorf("%v: got Below=true in another space", id)
		}
	}
}
