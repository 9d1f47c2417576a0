package rowkey_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/tidemark-go/tidemark/internal/store/rowkey"
)

func TestRollupKeyIsTheDocumentedOne(t *testing.T) {
	for _, tt := range []struct {
		salts int
		kind  string
		ms    int64
		want  string
	}{
		{0, rowkey.RollupKind + "hour", 1767225600000, "acme#readings!rollup.hour#berlin#roof-7#9223370269629175807"},
		{16, rowkey.MarkKind + "hour", 1767225600000, "acme#readings!mark.hour#12#berlin#roof-7#9223370269629175807"},
		{0, rowkey.MarkKind + "h_2", 0, "acme#readings!mark.h_2#berlin#roof-7#9223372036854775807"},
	} {
		points := space(t, "acme", "readings", 2, tt.salts)
		path := rowkey.Path("berlin", "roof-7")
		got := string(points.Kind(tt.kind).AppendPoint(nil, path, tt.ms))
		if got != tt.want {
			t.Errorf("key of %s = %q, want %q: stored rows would no longer be found", tt.kind, got, tt.want)
		}
		sibling, ok := rowkey.AppendSibling(nil, string(points.AppendPoint(nil, path, 7)), tt.kind, tt.ms, false)
		if !ok || string(sibling) != tt.want {
			t.Errorf("got sibling key %q, %v, want %q", sibling, ok, tt.want)
		}
	}
}

func TestFieldsRow(t *testing.T) {
	points := space(t, "acme", "readings", 2, 16)
	if got, want := points.ID("berlin/roof-7").FieldsRow(), "acme#readings!fields#"; got != want || !rowkey.IsFieldsRow(got) {
		t.Errorf("the row of fields is %q, want %q", got, want)
	}
	if got := (rowkey.ID{}).FieldsRow(); got != "" {
		t.Errorf("the row of fields of no dataset is %q", got)
	}
	for _, key := range []string{"", "acme#readings!head#berlin#roof-7#", "acme#fields#0", string(points.AppendPoint(nil, rowkey.Path("berlin", "roof-7"), 5))} {
		if rowkey.IsFieldsRow(key) {
			t.Errorf("%q counts as a row of fields", key)
		}
	}
}

// TestKindsAreSeparate checks that no key of one kind is valid as a key of another, or in a range of it.
func TestKindsAreSeparate(t *testing.T) {
	kinds := []string{"", "head", "rollup.h", "rollup.hour", "mark.h", "mark.hour"}
	for _, salts := range []int{0, 3} {
		points := space(t, "acme", "readings", 2, salts)
		of := func(kind string) rowkey.Space {
			if kind == "" {
				return points
			}
			return points.Kind(kind)
		}
		for _, a := range hostile {
			for _, b := range hostile {
				path := rowkey.Path(a, b)
				for _, kind := range kinds {
					key := string(of(kind).AppendPoint(nil, path, 5))
					if kind != "" {
						sibling, ok := rowkey.AppendSibling(nil, string(points.AppendPoint(nil, path, 99)), kind, 5, false)
						event := string(points.WithIdentity(true).AppendEvent(nil, path, 99, "e:1"))
						if same, ok := rowkey.AppendSibling(nil, event, kind, 5, true); !ok || string(same) != key {
							t.Fatalf("%s row of the event %q: got %q, %v, want %q", kind, event, same, ok, key)
						}
						if !ok || string(sibling) != key {
							t.Fatalf("%s row of %q: got %q, %v, want %q", kind, path, sibling, ok, key)
						}
					}
					for _, other := range kinds {
						got, units, ok := of(other).Split(key)
						if ok != (kind == other) || ok && (got != path || units != 5) {
							t.Fatalf("in the space of %q, key %q of %q: got %q, %d, %v", other, key, kind, got, units, ok)
						}
						in := 0
						for _, r := range of(other).Under("") {
							if key >= r.Start && key < r.Limit {
								in++
							}
						}
						if (in == 1) != (kind == other) || in > 1 {
							t.Fatalf("%q of %q: got it in %d ranges of %q", key, kind, in, other)
						}
					}
					if !strings.HasPrefix(key, points.TenantPrefix()) || of(kind).TenantPrefix() != points.TenantPrefix() {
						t.Fatalf("got %q, outside the tenant's rows", key)
					}
				}
			}
		}
	}
}

func TestSiblingKeysAreBounded(t *testing.T) {
	points := space(t, "acme", "readings", 1, 0)
	kind := rowkey.RollupKind + "hour"
	const limit = rowkey.MaxKey - len("acme#readings##") - rowkey.ReverseLen
	longest := strings.Repeat("x", limit-len("!rollup.hour"))
	if err := points.WithSiblings(kind).CheckPath(longest); err != nil {
		t.Errorf("longest entity: got %v, want nil", err)
	}
	if n := len(points.Kind(kind).AppendPoint(nil, longest, 0)); n != rowkey.MaxKey {
		t.Errorf("got a key of %d bytes in the rollup", n)
	}
	if err := points.WithSiblings(kind).CheckPath(longest + "x"); !errors.Is(err, rowkey.ErrInvalid) {
		t.Errorf("entity with a key in the rollup that is too long: got %v, want an error", err)
	}
	if err := points.CheckPath(longest + "x"); err != nil {
		t.Errorf("the same entity without a rollup: got %v, want nil", err)
	}
}

func FuzzAppendSibling(f *testing.F) {
	f.Add("acme#readings#berlin#roof-7#7456146436854775807", int64(5))
	f.Add("acme##", int64(0))
	f.Fuzz(func(t *testing.T, key string, units int64) {
		units = max(0, units)
		got, ok := rowkey.AppendSibling([]byte("x"), key, "mark.m", units, false)
		if !ok && string(got) != "x" {
			t.Errorf("refused key %q: got %q appended, want nothing", key, got)
		}
		points := space(t, "acme", "readings", 2, 0)
		path, _, split := points.Split(key)
		if !split {
			return
		}
		if want := "x" + string(points.Kind("mark.m").AppendPoint(nil, path, units)); !ok || string(got) != want {
			t.Errorf("%q: got sibling key %q, %v, want %q", key, got, ok, want)
		}
	})
}
