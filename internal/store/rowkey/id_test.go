package rowkey_test

import (
	"strings"
	"testing"

	"github.com/tidemark-go/tidemark/internal/store/rowkey"
)

// TestIDsAreOfOneEntity: the ID of a point's key is that of its entity, and of no other, of whichever tenant or dataset.
func TestIDsAreOfOneEntity(t *testing.T) {
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
							t.Fatalf("%q and %q have the same ID", name, other)
						}
						seen[id] = name
						got, units, ok := rowkey.PointID(string(s.AppendPoint(nil, path, 42)), salts, false)
						event := string(s.WithIdentity(true).AppendEvent(nil, path, 42, "e-1"))
						if same, at, ok := rowkey.PointID(event, salts, true); !ok || same != got || at != units {
							t.Fatalf("PointID of %q = %v, %d, %v; want %v", event, same, at, ok, got)
						}
						if !ok || got != id || units != 42 || got.Clone() != id || id.Len() != len(tenant)+len(dataset)+2+len(path) {
							t.Fatalf("PointID of %q = %v, %d, %v; want %v", name, got, units, ok, id)
						}
						first := rowkey.Path(a)
						if !id.Below(s, "") || !id.Below(s, first) || id.Below(s, rowkey.Path(a+"x")) || len(first) > 1 && id.Below(s, first[:len(first)-1]) {
							t.Fatalf("%q is not below its own prefixes, or is below another", name)
						}
					}
				}
			}
		}
	}
	id := space(t, "acme", "readings", 2, 0).ID("b#r")
	for _, other := range []rowkey.Space{space(t, "acme2", "readings", 2, 0), space(t, "acm", "readings", 2, 0), space(t, "acme", "readings2", 2, 0), space(t, "acme", "readings", 2, 3)} {
		if id.Below(other, "") || id.Below(other, "b") {
			t.Errorf("%v is below another space", id)
		}
	}
}

// FuzzPointID: whatever the key, what is taken for a point's is what a space makes.
func FuzzPointID(f *testing.F) {
	f.Add("acme#readings#berlin#roof-7#9223372036854775807", 0)
	f.Add("acme#readings#02#berlin#roof-7#0000000000000000000", 3)
	f.Add("##0000000000000000000", 0)
	f.Add("a##b#0000000000000000000", 0)
	f.Add("a#b#0000000000000000000", 2)
	f.Fuzz(func(t *testing.T, key string, salts int) {
		for _, identity := range []bool{false, true} {
			id, units, ok := rowkey.PointID(key, salts, identity)
			if !ok {
				continue
			}
			parts := strings.SplitN(key, "#", 3)
			if units < 0 || id.Len() >= len(key) || parts[0] == "" || parts[1] == "" {
				t.Fatalf("%q: %v, %d", key, id, units)
			}
		}
	})
}
