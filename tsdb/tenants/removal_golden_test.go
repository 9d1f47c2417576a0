package tenants_test

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-go/tidemark/internal/proof/testkit"
	"github.com/tidemark-go/tidemark/tsdb/tenants"
)

// TestStoredRemovals compares what removals store with a golden file, cell by cell: retired parts in the catalogue's
// entry, the record of a removal, and the mark of a deleted dataset. Random text and generations appear as <random>.
func TestStoredRemovals(t *testing.T) {
	a := newUnusedParts(t)
	random := regexp.MustCompile(`(\\"run\\":\\")[A-Z2-7]+|(_sys:gen@0=")[0-9]{10,}`)
	var got strings.Builder
	show := func(name string, err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		fmt.Fprintln(&got, name)
		rows := dump(t, a.table, func(key string) bool {
			return strings.HasPrefix(key, "!job") || strings.HasPrefix(key, "!dataset#") || strings.HasPrefix(key, "!erased#")
		})
		for _, row := range slices.Sorted(maps.Keys(rows)) {
			for _, cell := range strings.Split(rows[row], " _sys:") {
				cell = "_sys:" + strings.TrimPrefix(cell, "_sys:")
				fmt.Fprintf(&got, "  %q %s\n", row, random.ReplaceAllString(cell, "$1$2<random>"))
			}
		}
	}
	part := tenants.Part{Dataset: "temps", Class: "old"}
	show("a class is retired", tenants.Retire(t.Context(), a.store, part))
	opts := swift
	opts.By, opts.Reason = "ops", "test"
	opts.Progress = func(p tenants.Progress) {
		if p.State == tenants.Deleting && p.Deleted > 0 {
			show("it is being removed", nil)
		}
	}
	_, err := tenants.Remove(t.Context(), a.store, part, opts)
	show("it is removed", err)
	opts.Progress = nil
	_, err = tenants.Remove(t.Context(), a.store, tenants.Part{Dataset: "beside"}, opts)
	show("a dataset is deleted", err)
	show("it is released", tenants.Release(t.Context(), a.store, tenants.Part{Dataset: "beside"}))
	show("both are made anew", errors.Join(tenants.Release(t.Context(), a.store, part), a.store.Ensure(t.Context(), a.full, a.beside)))

	testkit.Golden(t, "testdata/removals.golden", got.String(),
		"programs of other versions would not go on with a removal, or use what was removed (see docs/format.md)")
}
