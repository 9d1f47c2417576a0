package rollup_test

import (
	"context"
	"fmt"
	"math"
	"time"
	_ "time/tzdata"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/internal/proof/testkit"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/embedded"
	"github.com/tidemark-go/tidemark/tsdb/rollup"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

// Weather is a reading of a weather station.
type Weather struct {
	TempC  float64  `json:"temp_c"`
	RainMM *float64 `json:"rain_mm,omitempty"`
}

// tempC is stored in hundredths of a degree.
var tempC = []rollup.Measure[Weather]{
	{Name: "temp_c", Of: func(w Weather) (float64, bool) { return w.TempC, true }, Decimals: 2, Max: 100},
}

// march is the start of a month in Berlin in which daylight saving time starts on the 29th.
var march = time.Date(2026, time.March, 1, 0, 0, 0, 0, berlin)

var station = tsdb.NewEntity("berlin", "roof-7")

// weather returns a schema with rollups.
func weather(rollups ...tsdb.Rollup) *tsdb.Schema[Weather] {
	return tsdb.MustDefine("weather", tsdb.Key("site", "device"), codec.JSON[Weather](), tsdb.SchemaOptions{Rollups: rollups})
}

// exampleMemory opens a store with a fixed clock, in the middle of April.
func exampleMemory(schemas ...tsdb.Dataset) (*tsdb.Store, *clock) {
	now := testkit.NewClock(march.AddDate(0, 1, 14))
	store, err := embedded.New(context.Background(), embedded.Options{StoreOptions: tsdb.StoreOptions{Clock: now.Now}})
	if err != nil {
		panic(err)
	}
	if err := store.Ensure(context.Background(), schemas...); err != nil {
		panic(err)
	}
	return store, now
}

// put stores one temperature per hour, starting at from.
func put(repo *tsdb.Repository[Weather], e tsdb.Entity, from time.Time, hours int) {
	points := make([]tsdb.Point[Weather], hours)
	for i := range points {
		points[i] = tsdb.Point[Weather]{Entity: e, Time: from.Add(time.Duration(i) * time.Hour), Value: Weather{TempC: float64(i % 24)}}
	}
	if _, err := repo.PutMany(context.Background(), points); err != nil {
		panic(err)
	}
}

// A month of temperatures by day in Berlin's time zone, computed from hours, which are computed from points. The
// station was off on the 3rd; the 29th has 23 hours.
func Example() {
	ctx := context.Background()
	hour := rollup.MustDefine("hour", window.Every(time.Hour), tempC, rollup.Options{})
	day := rollup.MustDefine("day", window.Days(1).In(berlin), tempC, rollup.Options{From: "hour"})
	schema := weather(hour, day)
	store, now := exampleMemory(schema)
	defer store.Close()
	repo := schema.For(store, tenant.MustParse("acme"))
	put(repo, station, march, 48)
	put(repo, station, march.AddDate(0, 0, 3), 28*24-1)

	worker, err := rollup.NewWorker(store, rollup.WorkerOptions{}, schema)
	if err != nil {
		panic(err)
	}
	for range 2 { // Run does this in the background, every half minute
		now.Add(time.Minute)
		if _, err := worker.Pass(ctx); err != nil {
			panic(err)
		}
	}
	month := tsdb.Between(march, march.AddDate(0, 1, 0))
	for b, err := range rollup.For(day, repo).WithGaps(window.Options{Gaps: window.Null}).Buckets(ctx, station, month, tsdb.OldestFirst) {
		if err != nil {
			panic(err)
		}
		if d := b.Start.Day(); d < 5 || d > 28 && d < 31 {
			fmt.Println(b.Start.Format(time.DateOnly), b.Points, b.Values[0].Mean, b.Values[0].Max)
		}
	}
	// Output:
	// 2026-03-01 24 11.5 23
	// 2026-03-02 24 11.5 23
	// 2026-03-03 0 NaN NaN
	// 2026-03-04 24 11.5 23
	// 2026-03-29 23 11 22
	// 2026-03-30 24 11.5 23
}

// Reads are correct with or without a worker: they compute the marked buckets.
func ExampleReader() {
	ctx := context.Background()
	day := rollup.MustDefine("day", window.Days(1).In(berlin), tempC, rollup.Options{})
	schema := weather(day)
	store, _ := exampleMemory(schema)
	defer store.Close()
	repo := schema.For(store, tenant.MustParse("acme"))
	days := rollup.For(day, repo)
	show := func() {
		newest, err := days.Latest(ctx, station, 1)
		if err != nil {
			panic(err)
		}
		for _, b := range newest {
			fmt.Println(b.Start.Format(time.DateOnly), b.Points, b.Values[0].Max, b.Open)
		}
	}
	put(repo, station, march, 24)
	show()
	late := march.Add(12*time.Hour + time.Minute)
	if err := repo.Put(ctx, station, late, Weather{TempC: 45}); err != nil {
		panic(err)
	}
	show()
	if err := repo.Delete(ctx, station, late); err != nil {
		panic(err)
	}
	show()
	total, err := days.Total(ctx, station, tsdb.AllTime())
	fmt.Println(total.Points, total.Values[0].Sum, err)
	// Output:
	// 2026-03-01 24 23 false
	// 2026-03-01 25 45 false
	// 2026-03-01 24 23 false
	// 24 276 <nil>
}

// Many devices in one call, each with its own result.
func ExampleEntityBuckets() {
	ctx := context.Background()
	day := rollup.MustDefine("day", window.Days(1).In(berlin), tempC, rollup.Options{})
	schema := weather(day)
	store, _ := exampleMemory(schema)
	defer store.Close()
	repo := schema.For(store, tenant.MustParse("acme"))
	put(repo, station, march, 24)
	answers, err := rollup.For(day, repo).Many(ctx, []tsdb.Entity{station, tsdb.NewEntity("berlin", "cellar-1")}, tsdb.Since(march), tsdb.OldestFirst)
	for _, a := range answers {
		fmt.Println(a.Entity, len(a.Buckets), a.Err)
	}
	fmt.Println(err)
	// Output:
	// berlin/roof-7 1 <nil>
	// berlin/cellar-1 0 <nil>
	// <nil>
}

// Gaps are filled as package window does.
func ExampleReader_WithGaps() {
	ctx := context.Background()
	hour := rollup.MustDefine("hour", window.Every(time.Hour), tempC, rollup.Options{})
	schema := weather(hour)
	store, _ := exampleMemory(schema)
	defer store.Close()
	repo := schema.For(store, tenant.MustParse("acme"))
	put(repo, station, march, 2)
	put(repo, station, march.Add(3*time.Hour), 2)
	four := tsdb.Between(march, march.Add(4*time.Hour))
	for b, err := range rollup.For(hour, repo).WithGaps(window.Options{Gaps: window.Previous}).Buckets(ctx, station, four, tsdb.OldestFirst) {
		fmt.Println(b.Start.In(berlin).Format("15:04"), b.Points, b.Values[0].Mean, err)
	}
	// Output:
	// 00:00 1 0 <nil>
	// 01:00 1 1 <nil>
	// 02:00 0 1 <nil>
	// 03:00 1 0 <nil>
}

// A worker computes marked buckets that are closed and whose marks are old enough.
func ExampleWorker() {
	ctx := context.Background()
	day := rollup.MustDefine("day", window.Days(1), tempC, rollup.Options{})
	schema := weather(day)
	store, now := exampleMemory(schema)
	defer store.Close()
	put(schema.For(store, tenant.MustParse("acme")), station, now.Now().UTC().Truncate(24*time.Hour).Add(-2*time.Hour), 3) // yesterday and today

	worker, err := rollup.NewWorker(store, rollup.WorkerOptions{
		OnError: func(err error) { fmt.Println("later again:", err) },
	}, schema)
	if err != nil {
		panic(err)
	}
	for _, wait := range []time.Duration{0, 2 * time.Minute, 24 * time.Hour} {
		now.Add(wait)
		p, err := worker.Pass(ctx) // servers call Run instead
		fmt.Printf("%d tenant, %d buckets, %d marks done with, %d waiting, %v\n", p.Tenants, p.Buckets, p.Marks, p.Waiting, err)
	}
	// Output:
	// 1 tenant, 0 buckets, 0 marks done with, 2 waiting, <nil>
	// 1 tenant, 1 buckets, 1 marks done with, 1 waiting, <nil>
	// 1 tenant, 1 buckets, 1 marks done with, 0 waiting, <nil>
}

// A rollup that is added to a schema with existing points lacks them until it is rebuilt.
func ExampleReader_Rebuild() {
	ctx := context.Background()
	before := weather()
	store, _ := exampleMemory(before)
	defer store.Close()
	acme := tenant.MustParse("acme")
	put(before.For(store, acme), station, march, 24)
	put(before.For(store, acme), tsdb.NewEntity("berlin", "roof-8"), march, 30)

	day := rollup.MustDefine("day", window.Days(1).In(berlin), tempC, rollup.Options{})
	schema := weather(day)
	if err := store.Ensure(ctx, schema); err != nil { // adds the rollup to the catalogue, and creates its families
		panic(err)
	}
	days := rollup.For(day, schema.For(store, acme))
	none, err := days.Latest(ctx, station, 1)
	fmt.Println(len(none), err)
	resume := ""
	n, err := days.Rebuild(ctx, tsdb.AllTime(), rollup.RebuildOptions{
		Resume: resume,
		OnEntity: func(r rollup.Rebuilt) error {
			resume = r.Resume // store it, to continue here if the rebuild ends early
			fmt.Println(r.Entity, r.Buckets)
			return nil
		},
	})
	fmt.Println(n, err)
	newest, err := days.Latest(ctx, station, 1)
	fmt.Println(newest[0].Points, err)
	// Output:
	// 0 <nil>
	// berlin/roof-7 1
	// berlin/roof-8 2
	// 3 <nil>
	// 24 <nil>
}

// A rollup by hour that is kept for two years, longer than the points.
func ExampleRollup() {
	hour, err := rollup.Define("hour", window.Every(time.Hour), tempC, rollup.Options{
		Retention: gc.Class{Name: "y2", Policy: gc.MaxAge(2 * 365 * 24 * time.Hour)},
		Lateness:  10 * time.Minute,
	})
	fmt.Println(hour.Name(), hour.Grid(), err)
	_, err = rollup.Define("half", window.Every(30*time.Minute), tempC, rollup.Options{Span: 45 * time.Minute})
	fmt.Println(err != nil)
	// Output:
	// hour 1h0m0s <nil>
	// true
}

// A value without a number, or above Max, is not counted.
func ExampleMeasure() {
	ctx := context.Background()
	rain := rollup.Measure[Weather]{
		Name: "rain_mm", Decimals: 1, Max: 500, Aggregates: window.Mean,
		Of: func(w Weather) (float64, bool) {
			if w.RainMM == nil {
				return 0, false
			}
			return *w.RainMM, true
		},
	}
	day := rollup.MustDefine("day", window.Days(1).In(berlin), []rollup.Measure[Weather]{rain}, rollup.Options{})
	schema := weather(day)
	store, _ := exampleMemory(schema)
	defer store.Close()
	repo := schema.For(store, tenant.MustParse("acme"))
	for i, mm := range []float64{1.25, 2, 1e6, math.NaN()} {
		w := Weather{RainMM: &mm}
		if math.IsNaN(mm) {
			w.RainMM = nil
		}
		if err := repo.Put(ctx, station, march.Add(time.Duration(i)*time.Hour), w); err != nil {
			panic(err)
		}
	}
	b, err := rollup.For(day, repo).Total(ctx, station, tsdb.AllTime())
	v := b.Values[0]
	fmt.Println(b.Points, v.Count, v.Sum, v.Mean, v.Max, err)
	// Output: 4 2 3.3 1.65 NaN <nil>
}

// The mode of a rollup says where its numbers come from: here each page view counts once, by the ID of its message.
func ExampleMode() {
	views, err := rollup.Define("views", window.Days(1), []rollup.Measure[Click]{}, rollup.Options{Mode: rollup.ByMessage})
	fmt.Println(views.Name(), err)
	// Output: views <nil>
}
