package tenants_test

import (
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tenants"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// TestExists: a tenant exists if it has rows, a profile or a mark, as List says. A tenant whose name is only a prefix
// of another's does not, nor does one that was readmitted.
func TestExists(t *testing.T) {
	temps := tsdb.MustDefine("temps", tsdb.Key("device"), codec.Float64(), tsdb.SchemaOptions{})
	store, _ := tsdbtest.Open(t, tsdbtest.Options{}, temps)
	rows, profile, erased := tenant.MustParse("rows2"), tenant.MustParse("profile2"), tenant.MustParse("erased2")
	if err := temps.For(store, rows).Put(t.Context(), tsdb.NewEntity("a"), time.Now(), 1); err != nil {
		t.Fatal(err)
	}
	if _, err := tenants.Onboard(t.Context(), store, profile, tenants.Profile{}, tenants.OnboardOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := tenants.Erase(t.Context(), store, erased, tenants.EraseOptions{Settle: time.Millisecond}); err != nil {
		t.Fatal(err)
	}
	readmitted := tenant.MustParse("readmitted")
	if _, err := tenants.Erase(t.Context(), store, readmitted, tenants.EraseOptions{Settle: time.Millisecond}); err != nil {
		t.Fatal(err)
	}
	if err := tenants.Readmit(t.Context(), store, readmitted); err != nil {
		t.Fatal(err)
	}
	listed := map[tenant.ID]bool{}
	for one, err := range tenants.List(t.Context(), store, tenants.ListOptions{}) {
		if err != nil {
			t.Fatal(err)
		}
		listed[one.ID] = true
	}
	for id, want := range map[tenant.ID]bool{
		readmitted: false, rows: true, profile: true, erased: true, tenant.MustParse("rows"): false, tenant.MustParse("rows22"): false, tenant.MustParse("profile"): false, tenant.MustParse("erased"): false,
	} {
		if got, err := tenants.Exists(t.Context(), store, id); err != nil || got != want || listed[id] != want {
			t.Errorf("tenant %s exists: %v, %v, listed: %v; want %v", id, got, err, listed[id], want)
		}
	}
}
