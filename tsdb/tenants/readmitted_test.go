package tenants_test

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/internal/store/tenancy"
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

// TestReadmittedByASecondOnboard: an outage begins at any request of an Onboard that readmits. Once a second Onboard
// has succeeded, all stores accept the tenant's points in time.
func TestReadmittedByASecondOnboard(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f, store, conn, _ := open(t, tsdbtest.Options{})
		other := second(t, conn, tsdb.Options{})
		onboard := func() error {
			_, err := tenants.Onboard(t.Context(), store, acme, tenants.Profile{}, tenants.OnboardOptions{Readmit: true})
			return err
		}
		for n, failed := 0, true; failed; n++ {
			if _, err := tenants.Erase(t.Context(), store, acme, quick); err != nil {
				t.Fatal(err)
			}
			time.Sleep(tenancy.ErasedWithin + time.Second)
			conn.Inject(tsdbtest.Fail(codes.Unavailable).Skip(n))
			failed = onboard() != nil
			conn.Clear()
			if err := onboard(); err != nil {
				t.Fatal(err)
			}
			time.Sleep(tenancy.ErasedWithin + time.Second)
			for name, s := range map[string]*tsdb.Store{"the same": store, "another": other} {
				if err := f.readings.For(s, acme).Put(t.Context(), tsdb.NewEntity("oslo", "a"), time.Now(), "v"); err != nil {
					t.Errorf("an outage after %d requests: Put in %s store: %v", n, name, err)
				}
			}
			if err := tenants.Readmit(t.Context(), store, acme); err != nil {
				t.Fatal(err)
			}
		}
	})
}
