package retention_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// TestCompleteFrom compares what plans that lengthen policies record in the catalogue with a golden file. Workers of
// other versions use it to compute rollups.
func TestCompleteFrom(t *testing.T) {
	now := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	store, _, table := tsdbtest.OpenTable(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Clock: func() time.Time { return now }}},
		define(t, "readings", days("d30", 30), choice(days("d90", 90)), hourly(days("d365", 365))))
	var got strings.Builder
	for _, step := range []struct {
		name   string
		schema tsdb.Dataset
	}{
		{"as it was made", nil},
		{"points are kept for longer", define(t, "readings", days("d30", 60), choice(days("d90", 90)), hourly(days("d365", 365)))},
		{"a choice and the rollup, too", define(t, "readings", days("d30", 60), choice(class("d90", gc.Never())), hourly(days("d365", 730)))},
		{"shorter again", define(t, "readings", days("d30", 30), choice(days("d90", 90)), hourly(days("d365", 365)))},
	} {
		if step.schema != nil {
			now = now.Add(day)
			p := plan(t, store, step.schema)
			apply(t, store, p, p.Destructive()...)
		}
		own := catalogue(t, table)
		fmt.Fprintln(&got, step.name)
		for _, cell := range slices.Sorted(maps.Keys(own)) {
			if strings.HasPrefix(cell, "!dataset#") {
				fmt.Fprintf(&got, "  %q %q\n", cell, own[cell])
			}
		}
	}
	golden(t, "complete_from.golden", []byte(got.String()))
}
