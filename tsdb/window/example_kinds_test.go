package window_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/embedded"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

// MeterReading is what a smart meter sends: the energy since it was installed, the voltage, the load, and whether it is connected
// to the grid.
type MeterReading struct {
	WattHours int64   `json:"wh"`
	Volts     float64 `json:"v"`
	LoadKW    float64 `json:"kw"`
	Relay     string  `json:"relay"`
}

var meters = tsdb.MustDefine("meters", tsdb.Key("street", "meter"), codec.JSON[MeterReading](), tsdb.SchemaOptions{})

// A smart meter counts energy. On March 3 it is replaced by a new one, which counts from zero.
func Example_smartMeter() {
	ctx := context.Background()
	store, err := embedded.OpenMemory(ctx)
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	if err := store.Ensure(ctx, meters); err != nil {
		log.Fatal(err)
	}
	repo := meters.For(store, tenant.MustParse("acme"))
	meter := tsdb.NewEntity("main-street", "m-17")
	start := time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)
	replaced := time.Date(2025, 3, 3, 12, 0, 0, 0, time.UTC)
	var points []tsdb.Point[MeterReading]
	energy := int64(5_000_000)
	for t := start; t.Before(start.AddDate(0, 0, 400)); t = t.Add(6 * time.Hour) {
		if energy += 1500; t.Equal(replaced) {
			energy = 500
		}
		relay := "on"
		if t.Day() == 10 {
			relay = "off"
		}
		points = append(points, tsdb.Point[MeterReading]{Entity: meter, Time: t, Value: MeterReading{energy, 230 + float64(t.Hour()%4), 0.25, relay}})
	}
	if _, err := repo.PutMany(ctx, points); err != nil {
		log.Fatal(err)
	}

	monthly, err := window.New(window.Months(1), []window.Measure[MeterReading]{
		{Name: "kwh", Kind: window.Counter, Int: func(r MeterReading) (int64, bool) { return r.WattHours, true }, Decimals: 3},
		{Name: "volts", Of: func(r MeterReading) (float64, bool) { return r.Volts, true }, Aggregates: window.Mean | window.StdDev},
		{Name: "kw", Of: func(r MeterReading) (float64, bool) { return r.LoadKW, true }, Aggregates: window.Integral},
		{Name: "relay", Kind: window.State, Text: func(r MeterReading) (string, bool) { return r.Relay, true }, MaxGap: 12 * time.Hour},
	}, window.Options{})
	if err != nil {
		log.Fatal(err)
	}
	year := tsdb.Between(start, start.AddDate(1, 0, 0))
	for month, err := range monthly.Read(ctx, repo, meter, year, tsdb.OldestFirst) {
		if err != nil {
			log.Fatal(err)
		}
		if month.Start.Month() > time.March {
			break
		}
		kwh, volts, kw, relay := month.Values[0], month.Values[1], month.Values[2], month.Values[3].States
		fmt.Printf("%s  %v kWh, resets: %d, %.0f W on average\n", month.Start.Format("Jan"), kwh.Exact.Increase, kwh.Resets, kwh.Rate*3600*1000)
		fmt.Printf("     %.1f V, standard deviation %.2f; %.1f kWh by the load\n", volts.Mean, volts.StdDev, kw.Integral/3600)
		fmt.Printf("     connected for %.1f%% of the time, off for %v, transitions: %d\n", 100*relay.DutyCycle("on"), relay.Time("off"), relay.Transitions)
	}
	// Output:
	// Jan  184.5 kWh, resets: 0, 250 W on average
	//      231.0 V, standard deviation 1.00; 186.0 kWh by the load
	//      connected for 96.8% of the time, off for 24h0m0s, transitions: 2
	// Feb  168 kWh, resets: 0, 250 W on average
	//      231.0 V, standard deviation 1.00; 168.0 kWh by the load
	//      connected for 96.4% of the time, off for 24h0m0s, transitions: 2
	// Mar  185 kWh, resets: 1, 249 W on average
	//      231.0 V, standard deviation 1.00; 186.0 kWh by the load
	//      connected for 96.8% of the time, off for 24h0m0s, transitions: 2
}

// The kind of a measure decides what can be asked. What makes no sense is refused when it is defined.
func ExampleKind() {
	volts := func(r MeterReading) (float64, bool) { return r.Volts, true }
	_, err := window.New(window.Days(1), []window.Measure[MeterReading]{{Name: "volts", Of: volts, Aggregates: window.Increase}}, window.Options{})
	fmt.Println(err)
	_, err = window.New(window.Days(1), []window.Measure[MeterReading]{{Name: "kwh", Kind: window.Counter, Of: volts, Aggregates: window.Sum}}, window.Options{})
	fmt.Println(err)
	// Output:
	// window: invalid input: Aggregates of measure 0 is increase of a gauge; want some of count+sum+min+max+ends+stddev+delta+integral+quantiles; a gauge falls without a reset, so it has no increase: declare Kind: Counter, or use Delta
	// window: invalid input: Aggregates of measure 0 is sum of a counter; want some of count+min+max+ends+increase; the readings of a counter are totals since a reset, so only their Increase can be added up or averaged
}

func ExampleAggregates() {
	fmt.Println(window.Mean, window.Mean|window.StdDev, window.Basic)
	// Output: count+sum count+sum+stddev count+sum+min+max
}

// A bucket of storage holds 1 GB from the 1st of June, and 3 GB from the 6th. It reports changes only, so its size holds until the next
// report, and the last one to the end of the month.
func ExampleMeasure_hold() {
	june := time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)
	month := tsdb.Between(june, june.AddDate(0, 1, 0))
	sizes := func(yield func(tsdb.Point[float64], error) bool) {
		_ = yield(tsdb.Point[float64]{Time: june, Value: 1}, nil) && yield(tsdb.Point[float64]{Time: june.AddDate(0, 0, 5), Value: 3}, nil)
	}
	for _, hold := range []bool{false, true} {
		months, err := window.New(window.Months(1), []window.Measure[float64]{
			{Name: "gb", Of: func(v float64) (float64, bool) { return v, true }, Aggregates: window.Integral, Hold: hold},
		}, window.Options{})
		if err != nil {
			log.Fatal(err)
		}
		for b, err := range months.Over(sizes, month, tsdb.OldestFirst) {
			if err != nil {
				log.Fatal(err)
			}
			gb := b.Values[0]
			fmt.Printf("%.3f GB-months, from %v\n", gb.Integral/b.End.Sub(b.Start).Seconds(), gb.Covered)
		}
	}
	// Output:
	// 0.167 GB-months, from 120h0m0s
	// 2.667 GB-months, from 720h0m0s
}

// Whole numbers are added without rounding, also where a float64 has no more digits.
func ExampleDecimal() {
	cents, err := window.New(window.Days(1), []window.Measure[int64]{
		{Name: "paid", Int: func(v int64) (int64, bool) { return v, true }, Decimals: 2},
	}, window.Options{})
	if err != nil {
		log.Fatal(err)
	}
	noon := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	paid := func(yield func(tsdb.Point[int64], error) bool) {
		for i, v := range []int64{1 << 62, 1 << 62, 1 << 62, 1} {
			if !yield(tsdb.Point[int64]{Time: noon.Add(time.Duration(i) * time.Minute), Value: v}, nil) {
				return
			}
		}
	}
	for b, err := range cents.Over(paid, tsdb.AllTime(), tsdb.OldestFirst) {
		fmt.Println(b.Values[0].Exact.Sum, err)
	}
	// Output: 138350580552821637.13 <nil>
}

func ExampleNewDecimal() {
	price := window.NewDecimal(1999, 2)
	fmt.Println(price, price.Float64(), price.Rat())
	// Output: 19.99 19.99 1999/100
}

// The 95th percentile of each day, and that of the whole week from the sketches of its days.
func ExampleSummary_Quantile() {
	loads, err := window.New(window.Days(1), []window.Measure[MeterReading]{
		{Name: "kw", Of: func(r MeterReading) (float64, bool) { return r.LoadKW, true }, Aggregates: window.Quantiles},
	}, window.Options{})
	if err != nil {
		log.Fatal(err)
	}
	monday := time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)
	readings := func(yield func(tsdb.Point[MeterReading], error) bool) {
		for i := range 7 * 24 {
			p := tsdb.Point[MeterReading]{Time: monday.Add(time.Duration(i) * time.Hour), Value: MeterReading{LoadKW: float64(i%24)/10 + float64(i/24)}}
			if !yield(p, nil) {
				return
			}
		}
	}
	var week window.Sketch
	for day, err := range loads.Over(readings, tsdb.AllTime(), tsdb.OldestFirst) {
		if err != nil {
			log.Fatal(err)
		}
		kw := day.Values[0]
		fmt.Printf("%s  median %.2f kW, p95 %.2f kW, at most %.2f kW\n", day.Start.Format("Mon"), kw.Quantile(0.5), kw.Quantile(0.95), kw.Max)
		week.Merge(kw.Sketch)
	}
	fmt.Printf("week median %.2f kW, p95 %.2f kW\n", week.Quantile(0.5), week.Quantile(0.95))
	// Output:
	// Mon  median 1.10 kW, p95 2.20 kW, at most 2.30 kW
	// Tue  median 2.11 kW, p95 3.20 kW, at most 3.30 kW
	// Wed  median 3.11 kW, p95 4.22 kW, at most 4.30 kW
	// Thu  median 4.09 kW, p95 5.22 kW, at most 5.30 kW
	// Fri  median 5.09 kW, p95 6.22 kW, at most 6.30 kW
	// Sat  median 6.09 kW, p95 7.22 kW, at most 7.30 kW
	// Sun  median 7.09 kW, p95 8.19 kW, at most 8.30 kW
	// week median 4.09 kW, p95 7.53 kW
}

// A Span adds up the times of a whole fleet, which soon take longer than the 292 years of a time.Duration.
func ExampleSpan() {
	driven := window.Span{}
	for range 500 { // vehicles
		driven = driven.Add(window.NewSpan(8000 * time.Hour))
	}
	_, short := driven.Duration()
	fmt.Println(driven, driven.Seconds()/3600, short)
	// Output: 4000000h0m0s 4e+06 false
}
