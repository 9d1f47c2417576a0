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

// MeterReading is what a smart meter sends: the energy since it was installed, the voltage, the load, and whether it is
// connected to the grid.
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
	store, err := embedded.New(ctx, embedded.Options{})
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
		fmt.Printf("%s  %v kWh, resets: %d, %.0f W on average\n", month.Start.Format("Jan"), kwh.Exact().Increase, kwh.Resets, kwh.Rate*3600*1000)
		fmt.Printf("     %.1f V, standard deviation %.2f; %.1f kWh by the load\n", volts.Mean, volts.StdDev, kw.Integral/3600)
		fmt.Printf("     connected for %.1f%% of the time, off for %v, transitions: %d\n", 100*relay.Time("on").Seconds()/(relay.Time("on").Seconds()+relay.Time("off").Seconds()), relay.Time("off"), relay.Transitions)
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
	// tsdb: invalid input: Aggregates of measure 0 is increase of a gauge; want some of count+sum+min+max+ends+stddev+delta+integral+quantiles; a gauge falls without a reset, so it has no increase: declare Kind: Counter, or use Delta
	// tsdb: invalid input: Aggregates of measure 0 is sum of a counter; want some of count+min+max+ends+increase; the readings of a counter are totals since a reset, so only their Increase can be added up or averaged
}

func ExampleAggregates() {
	fmt.Println(window.Mean, window.Mean|window.StdDev, window.Basic)
	// Output: count+sum count+sum+stddev count+sum+min+max
}

// A bucket of storage holds 1 GB from the 1st of June, and 3 GB from the 6th. It reports changes only, so its size
// holds until the next report, and the last one to the end of the month.
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
func ExampleExact() {
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
		fmt.Println(b.Values[0].Exact().Sum, err)
	}
	// Output: 138350580552821637.13 <nil>
}

// The 95th percentile of each day, and that of the whole week.
func ExampleSummary_Quantile() {
	monday := time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)
	readings := func(yield func(tsdb.Point[MeterReading], error) bool) {
		for i := range 7 * 24 {
			p := tsdb.Point[MeterReading]{Time: monday.Add(time.Duration(i) * time.Hour), Value: MeterReading{LoadKW: float64(i%24)/10 + float64(i/24)}}
			if !yield(p, nil) {
				return
			}
		}
	}
	measures := []window.Measure[MeterReading]{
		{Name: "kw", Of: func(r MeterReading) (float64, bool) { return r.LoadKW, true }, Aggregates: window.Quantiles},
	}
	for _, grid := range []window.Grid{window.Days(1), window.Weeks(1, time.Monday)} {
		loads, err := window.New(grid, measures, window.Options{})
		if err != nil {
			log.Fatal(err)
		}
		for b, err := range loads.Over(readings, tsdb.AllTime(), tsdb.OldestFirst) {
			if err != nil {
				log.Fatal(err)
			}
			kw := b.Values[0]
			fmt.Printf("%v from %s  median %.2f kW, p95 %.2f kW, at most %.2f kW\n", grid, b.Start.Format("Mon"), kw.Quantile(0.5), kw.Quantile(0.95), kw.Max)
		}
	}
	// Output:
	// 1d from Mon  median 1.10 kW, p95 2.20 kW, at most 2.30 kW
	// 1d from Tue  median 2.11 kW, p95 3.20 kW, at most 3.30 kW
	// 1d from Wed  median 3.11 kW, p95 4.22 kW, at most 4.30 kW
	// 1d from Thu  median 4.09 kW, p95 5.22 kW, at most 5.30 kW
	// 1d from Fri  median 5.09 kW, p95 6.22 kW, at most 6.30 kW
	// 1d from Sat  median 6.09 kW, p95 7.22 kW, at most 7.30 kW
	// 1d from Sun  median 7.09 kW, p95 8.19 kW, at most 8.30 kW
	// 1w from Mon  median 4.09 kW, p95 7.53 kW, at most 8.30 kW
}

// A Span may be longer than the 292 years of a time.Duration, as the times of a whole fleet are.
func ExampleSpan() {
	var covered window.Span // such as Summary.Covered
	fmt.Println(covered, covered.Seconds())
	// Output: 0s 0
}
