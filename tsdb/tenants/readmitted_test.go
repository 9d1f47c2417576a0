package tenants_test

import (
	"strings"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tenants"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// TestReadmittedWithoutItsClass: an erasure deletes the class with the profile, so all points of a readmitted tenant
// are in the default class.
func TestReadmittedWithoutItsClass(t *testing.T) {
	s, err := tsdb.Define("readings", tsdb.Key("site"), codec.String(), tsdb.SchemaOptions{Retention: week, Classes: []gc.Class{month}})
	if err != nil {
		t.Fatal(err)
	}
	for name, readmit := range map[string]func(*tsdb.Store) error{
		"Readmit": func(store *tsdb.Store) error { return tenants.Readmit(t.Context(), store, acme) },
		"Onboard": func(store *tsdb.Store) error {
			_, err := tenants.Onboard(t.Context(), store, acme, tenants.Profile{}, tenants.OnboardOptions{Readmit: true})
			return err
		},
	} {
		store, _, table := tsdbtest.OpenTable(t, tsdbtest.Options{}, s)
		put := func() error { return s.For(store, acme).Put(t.Context(), tsdb.NewEntity("oslo"), time.Now(), "v") }
		if _, err := tenants.Onboard(t.Context(), store, acme, tenants.Profile{Retention: "d30"}, tenants.OnboardOptions{}); err != nil {
			t.Fatal(err)
		}
		if err := put(); err != nil {
			t.Fatal(err)
		}
		if _, err := tenants.Erase(t.Context(), store, acme, tenants.EraseOptions{Settle: 1, RowsPerSecond: -1}); err != nil {
			t.Fatal(err)
		}
		if err := readmit(store); err != nil {
			t.Fatal(err)
		}
		if err := put(); err != nil {
			t.Fatal(err)
		}
		for key, row := range dump(t, table, func(key string) bool { return strings.HasPrefix(key, "acme#") }) {
			if !strings.Contains(row, "d7:") {
				t.Errorf("%s: %q is %s", name, key, row)
			}
		}
	}
}
