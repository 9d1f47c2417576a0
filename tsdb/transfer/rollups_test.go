package transfer_test

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/rollup"
	"github.com/tidemark-go/tidemark/tsdb/transfer"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

// A file holds points but no rollups. A store with other rollups of the same points, or none, accepts it, and computes
// its own.
func TestRollupsAreTheStores(t *testing.T) {
	temp := rollup.Measure[float64]{Name: "t", Of: func(v float64) (float64, bool) { return v, true }, Decimals: 1, Max: 1000}
	hourly := rollup.MustDefine("hour", window.Every(time.Hour), []rollup.Measure[float64]{temp}, rollup.Options{})
	daily := rollup.MustDefine("day", window.Every(24*time.Hour), []rollup.Measure[float64]{temp}, rollup.Options{})
	define := func(rollups ...tsdb.Rollup) *tsdb.Schema[float64] {
		return tsdb.MustDefine("temps", tsdb.Key("device"), codec.JSON[float64](), tsdb.SchemaOptions{Rollups: rollups})
	}
	plain, with, other := define(), define(hourly), define(daily)
	id, roof, noon := tenant.MustParse("acme"), tsdb.NewEntity("roof"), time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	for _, from := range []*tsdb.Schema[float64]{plain, with, other} {
		source, _ := tsdbtest.Open(t, tsdbtest.Options{}, from)
		for i := range 3 {
			if err := from.For(source, id).Put(t.Context(), roof, noon.Add(time.Duration(i)*time.Minute), float64(i)); err != nil {
				t.Fatal(err)
			}
		}
		var file bytes.Buffer
		if _, err := transfer.Export(t.Context(), source, id, &file, transfer.ExportOptions{}); err != nil {
			t.Fatal(err)
		}
		for i, to := range []*tsdb.Schema[float64]{plain, with, other} {
			for _, create := range []bool{false, true} {
				store, _ := tsdbtest.Open(t, tsdbtest.Options{}, to)
				got, err := transfer.Import(t.Context(), store, id, bytes.NewReader(file.Bytes()), transfer.ImportOptions{Create: create})
				if err != nil || got.Stored != 3 {
					t.Fatalf("into schema %d, create %t: %+v, %v", i, create, got, err)
				}
				if err := store.Verify(t.Context(), to); err != nil {
					t.Errorf("into schema %d, create %t: the catalogue differs: %v", i, create, err)
				}
				if to != with {
					continue
				}
				var sums []string
				for b, err := range rollup.For(hourly, to.For(store, id)).Buckets(t.Context(), roof, tsdb.AllTime(), tsdb.OldestFirst) {
					if err != nil {
						t.Fatal(err)
					}
					sums = append(sums, fmt.Sprint(b.Points))
				}
				if fmt.Sprint(sums) != "[3]" {
					t.Errorf("the hourly buckets hold %v points", sums)
				}
			}
		}
	}
}
