package forecast_test

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/examples/internal/forecast"
	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/embedded"
)

// forecastOfAMonth returns the forecast for a table with one point an hour over a month, which are kept for three
// months.
func forecastOfAMonth(opts forecast.Options) *forecast.Forecast {
	ctx := context.Background()
	now := time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)
	store, err := embedded.New(ctx, embedded.Options{StoreOptions: tsdb.StoreOptions{Clock: func() time.Time { return now }}})
	if err != nil {
		panic(err)
	}
	defer store.Close()
	temps := tsdb.MustDefine("temps", tsdb.Key("device"), codec.Float64(), tsdb.SchemaOptions{
		Retention: gc.Class{Name: "d90", Policy: gc.MaxAge(90 * 24 * time.Hour)},
	})
	if err := store.Ensure(ctx, temps); err != nil {
		panic(err)
	}
	points := make([]tsdb.Point[float64], 30*24)
	for i := range points {
		points[i] = tsdb.Point[float64]{Entity: tsdb.NewEntity("roof-7"), Time: now.Add(-time.Duration(i) * time.Hour), Value: 21.5}
	}
	if _, err := temps.For(store, tenant.MustParse("acme")).PutMany(ctx, points); err != nil {
		panic(err)
	}
	f, err := forecast.New(ctx, store, opts)
	if err != nil {
		panic(err)
	}
	return f
}

func ExampleNew() {
	fmt.Print(forecastOfAMonth(forecast.Options{}))
	// Output:
	// Forecast of table tidemark at 2026-06-01T00:00:00Z
	// Read: 720 rows, 36 KB, in 2 requests: 1 of 1 parts of the table, 1 of them to the end
	// All rows were counted: what is stored is exact.
	//
	// CLASS  POLICY      HOLDS  EXPIRED  A DAY   WEEK 1   WEEK 4   WEEK 12  STEADY
	// d90    maxage=90d  36 KB  0 B      1.2 KB  44.4 KB  69.6 KB  108 KB   108 KB
	// all                36 KB  0 B      1.2 KB  44.4 KB  69.6 KB  108 KB   108 KB
	//
	// TENANT  DATASET  ROWS OF  CLASS  HOLDS  CELLS  EXPIRED  A DAY
	// acme    temps    points   d90    36 KB  720    0 B      1.2 KB
}

func ExampleForecast_Drops() {
	f := forecastOfAMonth(forecast.Options{})
	drop, err := f.Drops("d90", gc.MaxAge(20*24*time.Hour))
	fmt.Print(drop, err)
	// Output:
	// Class d90 with maxage=20d would drop 11.9 KB, 239 cells:
	//   acme  temps  points  11.9 KB  239 cells
	//  <nil>
}

func ExampleForecast() {
	f := forecastOfAMonth(forecast.Options{})
	text, err := json.Marshal(f.Whole.Bytes)
	fmt.Println(f.Basis, string(text), err)
	// Output: counted 36000 <nil>
}

func ExampleOptions() {
	f := forecastOfAMonth(forecast.Options{Weeks: 2})
	fmt.Printf("%d %.0f\n", len(f.Whole.Weeks), f.Whole.DayCells)
	// Output: 2 24
}

func ExampleBasis() {
	if f := forecastOfAMonth(forecast.Options{}); f.Basis == forecast.Counted {
		fmt.Println("all rows were read")
	}
	// Output: all rows were read
}

func ExampleCost() {
	f := forecastOfAMonth(forecast.Options{})
	fmt.Printf("%+v\n", f.Cost)
	// Output: {Requests:2 Rows:720 Bytes:36000 Parts:1 Read:1 Finished:1}
}

func ExampleFigures() {
	f := forecastOfAMonth(forecast.Options{})
	fmt.Printf("in 12 weeks: %.0f bytes, and in the end: %.0f\n", f.Whole.Weeks[11], *f.Whole.Steady)
	// Output: in 12 weeks: 108050 bytes, and in the end: 108000
}

func ExampleClassFigures() {
	for _, c := range forecastOfAMonth(forecast.Options{}).Classes {
		fmt.Println(c.Class, c.Policy, c.Cells)
	}
	// Output: d90 maxage=90d 720
}

func ExampleHolding() {
	for _, h := range forecastOfAMonth(forecast.Options{}).Holdings {
		fmt.Println(h.Tenant, h.Dataset, h.Class, h.Cells)
	}
	// Output: acme temps d90 720
}

func ExampleDrop() {
	drop, err := forecastOfAMonth(forecast.Options{}).Drops("d90", gc.MaxAge(24*time.Hour))
	fmt.Println(drop.Class, drop.Policy, drop.Cells, err)
	// Output: d90 maxage=1d 695 <nil>
}

func ExampleDropFrom() {
	drop, err := forecastOfAMonth(forecast.Options{}).Drops("d90", gc.MaxAge(24*time.Hour))
	for _, h := range drop.From {
		fmt.Println(h.Tenant, h.Dataset, h.Cells, err)
	}
	// Output: acme temps 695 <nil>
}
