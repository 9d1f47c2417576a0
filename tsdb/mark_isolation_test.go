package tsdb_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/internal/proof/testkit"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/rollup"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

// TestMarksStayInTheirTenant is TestEachCallStaysInItsTenant for datasets with derived rollups, whose calls also write
// marks.
func TestMarksStayInTheirTenant(t *testing.T) {
	testkit.Plain(t)
	for _, salts := range []int{0, 3} {
		var schemas []*tsdb.Schema[string]
		var datasets []tsdb.Dataset
		for _, name := range hostileDatasets[:3] {
			s := must[*tsdb.Schema[string]](t)(tsdb.Define(name, tsdb.Key("site", "device"), codec.String(),
				tsdb.SchemaOptions{Salts: salts, Retention: d90, Rollups: three[string]()}))
			schemas, datasets = append(schemas, s), append(datasets, s)
		}
		c := testkit.NewClock(start.Add(time.Hour))
		store, _, table := tsdbtest.OpenTable(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Clock: c.Now, Cache: cached.Cache}}, datasets...)
		fill(t, store, schemas)
		wipe(t, table)
		before := rows(t, table)
		for name, op := range operations {
			for _, id := range []string{"a", "acme"} {
				s, parts := schemas[0], hostileEntities[2]
				points := ownRows(id, s.Name(), parts, slices.Contains(groups, name), salts)
				mine := func(key string) bool {
					dataset, rest, ok := strings.Cut(key, "!mark.")
					if !ok {
						return points(key)
					}
					_, rest, _ = strings.Cut(rest, "#")
					return points(dataset + "#" + rest)
				}
				if _, err := op(context.Background(), s.For(store, tenant.MustParse(id)), tsdb.NewEntity(parts...), start); err != nil {
					t.Fatalf("%s of %s/%s: %v", name, id, s.Name(), err)
				}
				after := rows(t, table)
				compareOthers(t, name+" of "+id, before, after, mine)
				restore(t, table, before, after)
			}
		}
	}
}

// TestStoredBytesOfMarks is TestStoredBytes for datasets with rollups.
func TestStoredBytesOfMarks(t *testing.T) {
	noon := time.Date(2026, 6, 1, 12, 0, 0, 123456789, time.UTC)
	c := testkit.NewClock(noon)
	berlin := must[*time.Location](t)(time.LoadLocation("Europe/Berlin"))
	measures := []rollup.Measure[reading]{{Name: "temp_c", Of: func(r reading) (float64, bool) { return r.TempC, true }, Decimals: 2, Max: 100}}
	minute := rollup.MustDefine("minute", window.Every(time.Minute), measures, rollup.Options{Retention: d90})
	hour := rollup.MustDefine("hour", window.Every(time.Hour), measures, rollup.Options{From: "minute"})
	plain := tsdb.MustDefine("weather", tsdb.Key("site", "device"), codec.JSON[reading](), tsdb.SchemaOptions{Rollups: []tsdb.Rollup{minute, hour}})
	salted := tsdb.MustDefine("salted", tsdb.Key("device"), codec.Float64(), tsdb.SchemaOptions{
		Salts: 16, Precision: tsdb.Milliseconds,
		Rollups: []tsdb.Rollup{rollup.MustDefine[float64]("day", window.Every(24*time.Hour).In(berlin), nil, rollup.Options{})},
	})
	store, _, table := tsdbtest.OpenTable(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Clock: c.Now}}, plain, salted)
	repo := plain.For(store, acme)
	for _, err := range []error{
		repo.Put(t.Context(), roof, noon, reading{21.5}),
		repo.Put(t.Context(), roof, noon.Add(-90*time.Second), reading{21}),
		repo.Put(t.Context(), tsdb.NewEntity("a b", "#%!$&"), noon.Add(-24*time.Hour), reading{20}),
		repo.Delete(t.Context(), tsdb.NewEntity("t", "first"), time.Unix(0, 0)),
		salted.For(store, acme).Put(t.Context(), tsdb.NewEntity("truck_1"), noon, 0.5),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	got := dump(t, table)
	testkit.Golden(t, "testdata/marks.golden", got, breaksRows)
}
