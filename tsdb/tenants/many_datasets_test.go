package tenants_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/internal/proof/testkit"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/retention"
	"github.com/tidemark-go/tidemark/tsdb/tenants"
	"github.com/tidemark-go/tidemark/tsdb/transfer"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// TestManyDatasets: one tenant has created very many datasets. All calls that read the catalogue still work for other
// tenants, and do not show a tenant another's datasets.
func TestManyDatasets(t *testing.T) {
	testkit.Plain(t)
	f, store, _, table := open(t, tsdbtest.Options{})
	var names []string
	var entries []*bigtable.Mutation
	for i := range 10_500 {
		name := fmt.Sprintf("d%05d-of-a-tenant-with-many", i)
		m := newOwn("json", `{"name":"`+name+`","key":["site","device"],"precision":"ns","tags":["str"],"classes":[{"name":"keep","policy":"never"}]}`)
		m.Set("_sys", "gen", 0, []byte("1"))
		names, entries = append(names, "!dataset#"+name), append(entries, m)
	}
	if errs, err := table.ApplyBulk(t.Context(), names, entries); err != nil || errs != nil {
		t.Fatal(errs, err)
	}
	beta := tenant.MustParse("beta")
	f.fill(t, store, acme)
	if err := f.readings.For(store, beta).Put(t.Context(), tsdb.NewEntity("s", "d"), start, "x"); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"beta#a#b#1", "foreign#a#b#1"} { // of an unknown dataset, before all others
		if err := table.Apply(t.Context(), key, newCell()); err != nil {
			t.Fatal(err)
		}
	}
	if got := list(t, store, tenants.ListOptions{}); len(got) != 2 || got[0].ID != acme || got[1].ID != beta || !got[1].Rows {
		t.Errorf("List = %+v", got)
	}
	if rep, err := tenants.Usage(t.Context(), store, acme, tenants.UsageOptions{}); err != nil || !rep.Complete || len(rep.Kinds) != 5 || !rep.Kinds[0].Known {
		t.Errorf("Usage = %+v, %v", rep, err)
	}
	var file bytes.Buffer
	if got, err := transfer.Export(t.Context(), store, beta, &file, transfer.ExportOptions{}); err != nil || got.Points != 1 {
		t.Errorf("Export = %+v, %v", got, err)
	}
	if header, _, _ := strings.Cut(file.String(), "\n"); !strings.Contains(header, `"readings"`) || strings.Contains(header, "many") || strings.Contains(header, "salted") {
		t.Errorf("the header of the export names datasets in which the tenant has no rows: %.300s", header)
	}
	if p, err := retention.NewPlanFor(t.Context(), store, nil); err != nil || !p.Empty() {
		t.Errorf("NewPlanFor: %v", err)
	}
	if _, err := tenants.Onboard(t.Context(), store, beta, tenants.Profile{Classes: map[string]string{"readings": "keep"}}, tenants.OnboardOptions{}); err != nil {
		t.Errorf("Onboard: %v", err)
	}
	if rep, err := tenants.EraseEntity(t.Context(), store, acme, "readings", map[string]string{"site": "site#1", "device": "dev 0"}, quick); err != nil || rep.Rows != 2 {
		t.Errorf("EraseEntity = %+v, %v", rep, err)
	}
	if rep, err := tenants.Remove(t.Context(), store, readings, swift); err != nil || rep.Rows != 11 {
		t.Errorf("Remove = %+v, %v", rep, err)
	}
}
