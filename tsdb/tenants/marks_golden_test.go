package tenants_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-go/tidemark/internal/proof/testkit"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb/tenants"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// TestStoredMarks compares erasure marks with a golden file, cell by cell. Programs of other versions decide by them
// what they reject, and which journal records they drop.
func TestStoredMarks(t *testing.T) {
	f, store, _, table := open(t, tsdbtest.Options{})
	ab := tenant.MustParse("ab")
	fields := map[string]string{"site": "oslo", "device": "x"}
	f.fill(t, store, acme)
	var got strings.Builder
	step := func(name string, err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		fmt.Fprintln(&got, name)
		rows := dump(t, table, func(key string) bool { return strings.HasPrefix(key, "!erased#") })
		for _, row := range slices.Sorted(maps.Keys(rows)) {
			for _, cell := range strings.Split(rows[row], " _sys:") {
				cell = strings.TrimPrefix(cell, "_sys:")
				if column, _, _ := strings.Cut(cell, "@"); len(column) == 1 {
					fmt.Fprintf(&got, "  %q _sys:%s\n", row, cell)
				}
			}
		}
	}
	_, err := tenants.Erase(t.Context(), store, acme, quick)
	step("a tenant is erased", err)
	_, err = tenants.EraseEntity(t.Context(), store, ab, "", fields, quick)
	step("an entity is erased from two datasets", err)
	step("the tenant is readmitted", tenants.Readmit(t.Context(), store, acme))
	step("the entity is readmitted", tenants.ReadmitEntity(t.Context(), store, ab, "", fields))
	_, err = tenants.EraseEntity(t.Context(), store, ab, "", fields, quick)
	step("it is erased again", err)

	testkit.Golden(t, "testdata/marks.golden", got.String(),
		"programs of other versions would take writes of erased tenants, or refuse those of others (see docs/format.md)")
}
