package tenants_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/internal/proof/testkit"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tenants"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

var (
	randomText = regexp.MustCompile(`[A-Z2-7]{26}`)  // of crypto/rand.Text
	entityName = regexp.MustCompile(`#[0-9a-f]{32}`) // of an entity's mark
)

// TestChangeLogs compares the two logs of changes with golden files, cell by cell. Programs of other versions read them
// to find out which tenants are erased and which class their points are written in. Random texts appear as $1, $2, in
// order of appearance, and hashes of entities as #HASH.
func TestChangeLogs(t *testing.T) {
	s, err := tsdb.Define("readings", tsdb.Key("site"), codec.String(), tsdb.SchemaOptions{Retention: week, Classes: []gc.Class{month}})
	if err != nil {
		t.Fatal(err)
	}
	store, conn, table := tsdbtest.OpenTable(t, tsdbtest.Options{}, s)
	var texts []string
	var got strings.Builder
	show := func(step, row string) {
		t.Helper()
		cells := dump(t, table, func(key string) bool { return key == row })[row]
		for _, text := range randomText.FindAllString(cells, -1) {
			if !slices.Contains(texts, text) {
				texts = append(texts, text)
			}
		}
		for i, text := range texts {
			cells = strings.ReplaceAll(cells, text, fmt.Sprint("$", i+1))
		}
		cells = entityName.ReplaceAllString(cells, "#HASH")
		fmt.Fprintf(&got, "%s\n", step)
		for _, cell := range strings.Split(cells, " _sys:") {
			fmt.Fprintf(&got, "  %q _sys:%s\n", row, strings.TrimPrefix(cell, "_sys:"))
		}
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	onboard := func(name, class string) error {
		_, err := tenants.Onboard(t.Context(), store, tenant.MustParse(name), tenants.Profile{Retention: class}, tenants.OnboardOptions{Replace: true})
		return err
	}
	must(onboard("acme", "d30"))
	show("a profile names a class", "!tenant")
	must(onboard("ab", "d7"))
	show("and another one", "!tenant")
	conn.Inject(tsdbtest.Fail(codes.PermissionDenied).On(tsdbtest.CheckAndMutateRow))
	if err := onboard("acme", "d7"); err == nil {
		t.Fatal("a profile that could not be saved was reported as saved")
	}
	conn.Clear()
	show("a change was begun and did not end", "!tenant")
	must(onboard("acme", "d7"))
	show("it ended", "!tenant")

	_, err = tenants.Erase(t.Context(), store, acme, quick)
	must(err)
	show("a tenant is erased", "!erased")
	_, err = tenants.EraseEntity(t.Context(), store, tenant.MustParse("ab"), "", map[string]string{"site": "oslo"}, quick)
	must(err)
	show("an entity is erased", "!erased")
	must(tenants.ReadmitEntity(t.Context(), store, tenant.MustParse("ab"), "", map[string]string{"site": "oslo"}))
	show("it is readmitted", "!erased")

	testkit.Golden(t, "testdata/changes.golden", got.String(),
		"programs of other versions would miss changes of erasures and classes (see docs/format.md)")
}
