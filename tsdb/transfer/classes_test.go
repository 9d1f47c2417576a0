package transfer_test

import (
	"bytes"
	"testing"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tenants"
	"github.com/tidemark-go/tidemark/tsdb/transfer"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// TestImportKeepsTheClass: an import keeps the class that each point has in the file, whatever the tenant's class is. A
// store that is created from the file offers the same classes.
func TestImportKeepsTheClass(t *testing.T) {
	s := tsdb.MustDefine("notes", tsdb.Key("site", "device"), codec.String(), tsdb.SchemaOptions{Retention: d30, Classes: []gc.Class{d90}})
	store, _, table := tsdbtest.OpenTable(t, clock, s)
	from, to := tenant.MustParse("from"), tenant.MustParse("to")
	at := noon.AddDate(0, 0, -60)
	_, err := tenants.Onboard(t.Context(), store, from, tenants.Profile{Retention: "d90"}, tenants.OnboardOptions{})
	must(t, err)
	must(t, s.For(store, from).Put(t.Context(), tsdb.NewEntity("a", "b"), at, "two months old"))
	file, _ := export(t, store, from, transfer.ExportOptions{})
	opts := transfer.ImportOptions{OtherTenant: true, Create: true}
	got, err := transfer.Import(t.Context(), store, to, bytes.NewReader(file), opts)
	must(t, err)
	want := dump(t, table, "from")
	if have := dump(t, table, "to"); got.Stored != 1 || len(have) != 1 || have[0] != want[0] {
		t.Errorf("import %+v, classes %v, want %v", got, have, want)
	}
	elsewhere, _ := tsdbtest.Open(t, clock)
	_, err = transfer.Import(t.Context(), elsewhere, to, bytes.NewReader(file), opts)
	must(t, err)
	must(t, elsewhere.Verify(t.Context(), s))
	_, err = tenants.Onboard(t.Context(), elsewhere, to, tenants.Profile{Classes: map[string]string{"notes": "d90"}}, tenants.OnboardOptions{})
	must(t, err)
}
