package tsdb_test

import (
	"errors"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/internal/proof/testkit"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// TestStoredBytesOfHeads is TestStoredBytes for datasets with heads.
func TestStoredBytesOfHeads(t *testing.T) {
	noon := time.Date(2026, 6, 1, 12, 0, 0, 123456789, time.UTC)
	c := testkit.NewClock(noon)
	d30 := gc.Class{Name: "d30", Policy: gc.MaxAge(30 * 24 * time.Hour)}
	beside := tsdb.MustDefine("weather", tsdb.Key("site", "device"), codec.JSON[reading](),
		tsdb.SchemaOptions{Precision: tsdb.Milliseconds, Head: tsdb.Head{Points: 2}})
	only := tsdb.MustDefine("state", tsdb.Key("device"), codec.Fallback(codec.Float64(), codec.Convert(codec.Int64(), func(int64) (float64, error) { return 0, nil }, nil)),
		tsdb.SchemaOptions{Precision: tsdb.Milliseconds, Salts: 16, Retention: d30, FormerClasses: []gc.Class{d90}, Head: tsdb.Head{Points: 5, Only: true}})
	store, _, table := tsdbtest.OpenTable(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Clock: c.Now}}, beside, only)
	ctx := t.Context()
	weather, states := beside.For(store, acme), only.For(store, acme)
	var many []tsdb.Point[reading]
	for i := range 4 { // a head keeps two of them
		many = append(many, tsdb.Point[reading]{Entity: tsdb.NewEntity("a b", "#%!$&"), Time: noon.Add(time.Duration(i) * time.Second), Value: reading{float64(i)}})
	}
	_, err := weather.PutMany(ctx, many)
	err = errors.Join(err,
		weather.Put(ctx, roof, noon, reading{21.5}),
		weather.Put(ctx, roof, noon.Add(-time.Hour), reading{20}),
		weather.Put(ctx, roof, noon.Add(time.Hour), reading{22}),
		weather.Delete(ctx, roof, noon),
		weather.Put(ctx, tsdb.NewEntity("t", "last"), time.Date(9999, 12, 31, 23, 59, 59, 999e6, time.UTC), reading{2}),
		states.Put(ctx, tsdb.NewEntity("truck_1"), noon, 0.5),
		states.Put(ctx, tsdb.NewEntity("truck_1"), noon.Add(-time.Second), 0.25),
		states.Put(ctx, tsdb.NewEntity("truck_2"), noon, 1))
	if err != nil {
		t.Fatal(err)
	}
	got := dump(t, table)
	testkit.Golden(t, "testdata/heads.golden", got, breaksRows)
}
