package main

import (
	"strings"
	"testing"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/embedded"
)

// The command lists the fields of a tenant, also of points whose codec does not name them to the store's writers.
func TestFields(t *testing.T) {
	dir := t.TempDir()
	store, err := embedded.Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	s := tsdb.MustDefine("meters", tsdb.Key("meter"), codec.JSON[map[string]any](), tsdb.SchemaOptions{})
	if err := store.Ensure(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	for name, v := range map[string]map[string]any{"m1": {"kwh": 1.5, "motor": map[string]any{"on": true}}, "m2": {"kwh": "n/a"}} {
		if err := s.For(store, tenant.MustParse("acme")).Put(t.Context(), tsdb.NewEntity(name), monday, v); err != nil {
			t.Fatal(err)
		}
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	day := monday.UTC().Format("2006-01-02")
	want := `{"fields":[{"name":"kwh","kinds":["float","str"],"first":"` + day + `","last":"` + day + `"},{"name":"motor.on","kinds":["bool"],"first":"` + day + `","last":"` + day + `"}]}`
	for _, more := range [][]string{nil, {"--record"}, {"--record"}} {
		out, remarks, err := tidectl(t, t.Context(), "", append([]string{"--dir", dir, "fields", "meters", "acme", "-o", "json"}, more...)...)
		if err != nil || strings.TrimSpace(out) != want {
			t.Errorf("%v: got %s, %v (%s); want %s", more, out, err, remarks, want)
		}
	}
	out, _, err := tidectl(t, t.Context(), "", "--dir", dir, "fields", "meters", "acme")
	if err != nil || !strings.Contains(out, "motor.on  bool") {
		t.Errorf("got %s, %v", out, err)
	}
	if _, _, err := tidectl(t, t.Context(), "", "--dir", dir, "fields", "--record", "--points-per-second", "1", "meters", "acme"); err == nil || !strings.Contains(err.Error(), "at least 100") {
		t.Errorf("one point a second: %v", err)
	}
}
