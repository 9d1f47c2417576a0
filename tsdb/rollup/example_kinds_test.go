package rollup_test

import (
	"context"
	"fmt"
	"time"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/embedded"
	"github.com/tidemark-go/tidemark/tsdb/rollup"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

// MeterReading is what a smart meter sends: the energy since it was installed, and the voltage.
type MeterReading struct {
	WattHours int64   `json:"wh"`
	Volts     float64 `json:"v"`
}

var meterMeasuresOfExample = []rollup.Measure[MeterReading]{
	{Name: "kwh", Kind: window.Counter, Int: func(r MeterReading) (int64, bool) { return r.WattHours, true }, Decimals: 3, Max: 1e9},
	{Name: "volts", Of: func(r MeterReading) (float64, bool) { return r.Volts, true }, Decimals: 1, Max: 1000, Aggregates: window.Basic | window.StdDev},
}

var (
	meterHours = rollup.MustDefine("hour", window.Every(time.Hour), meterMeasuresOfExample, rollup.Options{})
	meterDays  = rollup.MustDefine("day", window.Days(1), meterMeasuresOfExample, rollup.Options{From: "hour"})
	meters     = tsdb.MustDefine("meters", tsdb.Key("street", "meter"), codec.JSON[MeterReading](), tsdb.SchemaOptions{
		Rollups: []tsdb.Rollup{meterHours, meterDays},
	})
)

// A smart meter of 400 days: what it counted in March by days, and in the whole time. On March 3 it was replaced by a
// new one, which counts from zero.
func Example_smartMeter() {
	ctx := context.Background()
	store, err := embedded.New(ctx, embedded.Options{})
	if err != nil {
		panic(err)
	}
	defer store.Close()
	if err := store.Ensure(ctx, meters); err != nil {
		panic(err)
	}
	repo := meters.For(store, tenant.MustParse("acme"))
	meter := tsdb.NewEntity("main-street", "m-17")
	start := time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)
	var points []tsdb.Point[MeterReading]
	energy := int64(5_000_000)
	for t := start; t.Before(start.AddDate(0, 0, 400)); t = t.Add(6 * time.Hour) {
		if energy += 1500; t.Equal(time.Date(2025, 3, 3, 12, 0, 0, 0, time.UTC)) {
			energy = 500
		}
		points = append(points, tsdb.Point[MeterReading]{Entity: meter, Time: t, Value: MeterReading{energy, 230 + float64(t.Hour()%4)}})
	}
	if _, err := repo.PutMany(ctx, points); err != nil {
		panic(err)
	}

	days := rollup.For(meterDays, repo)
	march := tsdb.Between(time.Date(2025, 3, 1, 0, 0, 0, 0, time.UTC), time.Date(2025, 4, 1, 0, 0, 0, 0, time.UTC))
	for day, err := range days.Buckets(ctx, meter, march, tsdb.OldestFirst) {
		if err != nil {
			panic(err)
		}
		if day.Start.Day() > 4 {
			break
		}
		kwh, volts := day.Values[0], day.Values[1]
		fmt.Printf("%s  %v kWh, resets: %d; %.1f V, standard deviation %.2f\n", day.Start.Format("Jan 2"), kwh.Exact().Increase, kwh.Resets, volts.Mean, volts.StdDev)
	}
	total, err := days.Total(ctx, meter, tsdb.AllTime())
	fmt.Println("400 days:", total.Values[0].Exact().Increase, "kWh", err)
	// Output:
	// Mar 1  6 kWh, resets: 0; 231.0 V, standard deviation 1.15
	// Mar 2  6 kWh, resets: 0; 231.0 V, standard deviation 1.15
	// Mar 3  5 kWh, resets: 1; 231.0 V, standard deviation 1.15
	// Mar 4  6 kWh, resets: 0; 231.0 V, standard deviation 1.15
	// 400 days: 2397.5 kWh <nil>
}

// Quarters of a year come from the rollup by days, and half hours, which no rollup has, from the points.
func Example_windows() {
	ctx := context.Background()
	store, err := embedded.New(ctx, embedded.Options{})
	if err != nil {
		panic(err)
	}
	defer store.Close()
	if err := store.Ensure(ctx, meters); err != nil {
		panic(err)
	}
	repo := meters.For(store, tenant.MustParse("acme"))
	meter := tsdb.NewEntity("main-street", "m-17")
	start := time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)
	for day := range 365 {
		if err := repo.Put(ctx, meter, start.AddDate(0, 0, day), MeterReading{WattHours: int64(6000 * day)}); err != nil {
			panic(err)
		}
	}
	for _, grid := range []window.Grid{window.Months(3), window.Every(30 * time.Minute)} {
		by, err := window.New(grid, []window.Measure[MeterReading]{
			{Name: "kwh", Kind: window.Counter, Int: func(r MeterReading) (int64, bool) { return r.WattHours, true }, Decimals: 3},
		}, window.Options{})
		if err != nil {
			panic(err)
		}
		year := tsdb.Between(start, start.AddDate(1, 0, 0))
		source, err := by.Source(ctx, repo, year)
		if err != nil {
			panic(err)
		}
		n := 0
		for b, err := range by.Read(ctx, repo, meter, year, tsdb.OldestFirst) {
			if err != nil {
				panic(err)
			}
			if n++; n == 2 {
				fmt.Printf("%v: %v kWh in the second one, from rollup %q\n", grid, b.Values[0].Exact().Increase, source)
			}
		}
	}
	// Output:
	// 3mo: 546 kWh in the second one, from rollup "day"
	// 30m0s: 6 kWh in the second one, from rollup ""
}
