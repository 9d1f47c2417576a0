package window_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"time"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/embedded"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

// Reading is a measurement. Not every device has a humidity sensor.
type Reading struct {
	TempC    float64  `json:"temp_c"`
	Humidity *float64 `json:"humidity,omitempty"`
}

func tempC(r Reading) (float64, bool) { return r.TempC, true }

func humidity(r Reading) (float64, bool) {
	if r.Humidity == nil {
		return 0, false
	}
	return *r.Humidity, true
}

var weather = tsdb.MustDefine("weather", tsdb.Key("site", "device"), codec.JSON[Reading](), tsdb.SchemaOptions{})

// A month of temperature readings of a device, by day. Daylight saving time ends on the 25th: that day has 25 hours.
func Example() {
	ctx := context.Background()
	store, err := embedded.New(ctx, embedded.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	if err := store.Ensure(ctx, weather); err != nil {
		log.Fatal(err)
	}
	repo := weather.For(store, tenant.MustParse("acme"))
	roof := tsdb.NewEntity("berlin", "roof-7")
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		log.Fatal(err)
	}
	from, to := time.Date(2026, 10, 1, 0, 0, 0, 0, berlin), time.Date(2026, 11, 1, 0, 0, 0, 0, berlin)
	var points []tsdb.Point[Reading]
	for t := from; t.Before(to); t = t.Add(time.Hour) {
		points = append(points, tsdb.Point[Reading]{Entity: roof, Time: t, Value: Reading{TempC: float64(30-t.Day()) + float64(t.Hour())/4}})
	}
	if _, err := repo.PutMany(ctx, points); err != nil {
		log.Fatal(err)
	}

	byDay, err := window.New(window.Days(1).In(berlin), []window.Measure[Reading]{{Name: "temp_c", Of: tempC}}, window.Options{})
	if err != nil {
		log.Fatal(err)
	}
	for day, err := range byDay.Read(ctx, repo, roof, tsdb.Between(from, to), tsdb.OldestFirst) {
		if err != nil {
			log.Fatal(err)
		}
		if temp := day.Values[0]; day.Start.Day() >= 23 && day.Start.Day() <= 27 {
			fmt.Printf("%s  %d readings  %.2f to %.2f, mean %.3f\n", day.Start.Format("Jan 2"), temp.Count, temp.Min, temp.Max, temp.Mean)
		}
	}
	// Output:
	// Oct 23  24 readings  7.00 to 12.75, mean 9.875
	// Oct 24  24 readings  6.00 to 11.75, mean 8.875
	// Oct 25  25 readings  5.00 to 10.75, mean 7.780
	// Oct 26  24 readings  4.00 to 9.75, mean 6.875
	// Oct 27  24 readings  3.00 to 8.75, mean 5.875
}

// reading returns a point for examples without a store.
func reading(clock string, temp float64) tsdb.Point[Reading] {
	t, err := time.Parse("2006-01-02 15:04", "2026-06-01 "+clock)
	if err != nil {
		log.Fatal(err)
	}
	return tsdb.Point[Reading]{Time: t, Value: Reading{TempC: temp}}
}

func points(list ...tsdb.Point[Reading]) func(func(tsdb.Point[Reading], error) bool) {
	return func(yield func(tsdb.Point[Reading], error) bool) {
		for _, p := range list {
			if !yield(p, nil) {
				return
			}
		}
	}
}

var morning = tsdb.Between(time.Date(2026, 6, 1, 6, 0, 0, 0, time.UTC), time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC))

func ExampleAggregator() {
	hourly, err := window.New(window.Every(time.Hour), []window.Measure[Reading]{{Name: "temp_c", Of: tempC}}, window.Options{})
	if err != nil {
		log.Fatal(err)
	}
	seq := points(reading("07:10", 18), reading("07:50", 20), reading("10:05", 26)) // any sequence works
	for b, err := range hourly.Over(seq, morning, tsdb.OldestFirst) {
		fmt.Println(b.Start.Format("15:04"), b.Values[0].Mean, err)
	}
	// Output:
	// 07:00 19 <nil>
	// 10:00 26 <nil>
}

func ExampleGaps() {
	for _, gaps := range []window.Gaps{window.LeaveOut, window.Null, window.Previous, window.Linear} {
		hourly, err := window.New(window.Every(time.Hour), []window.Measure[Reading]{{Name: "temp_c", Of: tempC}}, window.Options{Gaps: gaps})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%-10v", gaps)
		seq := points(reading("07:10", 18), reading("07:50", 20), reading("10:05", 25))
		for b, err := range hourly.Over(seq, morning, tsdb.OldestFirst) {
			if err != nil {
				log.Fatal(err)
			}
			fmt.Printf("  %d: %v", b.Start.Hour(), b.Values[0].Mean)
		}
		fmt.Println()
	}
	// Output:
	// leave-out   7: 19  10: 25
	// null        6: NaN  7: 19  8: NaN  9: NaN  10: 25  11: NaN
	// previous    6: NaN  7: 19  8: 19  9: 19  10: 25  11: 25
	// linear      6: NaN  7: 19  8: 21  9: 23  10: 25  11: NaN
}

// Temperature and humidity in one pass. The second reading has no humidity.
func ExampleMeasure() {
	wet := 40.0
	first := reading("07:10", 18)
	first.Value.Humidity = &wet
	daily, err := window.New(window.Days(1), []window.Measure[Reading]{
		{Name: "temp_c", Of: tempC},
		{Name: "humidity", Of: humidity},
	}, window.Options{})
	if err != nil {
		log.Fatal(err)
	}
	for b, err := range daily.Over(points(first, reading("07:50", 20)), tsdb.AllTime(), tsdb.OldestFirst) {
		fmt.Println(b.Points, b.Values[0].Count, b.Values[0].Last, b.Values[1].Count, b.Values[1].Last, err)
	}
	// Output: 2 2 20 1 40 <nil>
}

// The JSON of a bucket has its summaries by name; missing values are null.
func ExampleBucket() {
	hourly, err := window.New(window.Every(time.Hour), []window.Measure[Reading]{{Name: "temp_c", Of: tempC}}, window.Options{Gaps: window.Null})
	if err != nil {
		log.Fatal(err)
	}
	from := time.Date(2026, 6, 1, 7, 30, 0, 0, time.UTC)
	for b, err := range hourly.Over(points(reading("07:50", 20)), tsdb.Between(from, from.Add(90*time.Minute)), tsdb.OldestFirst) {
		if err != nil {
			log.Fatal(err)
		}
		text, err := json.Marshal(b)
		fmt.Println(string(text), err)
	}
	// Output:
	// {"start":"2026-06-01T07:00:00Z","end":"2026-06-01T08:00:00Z","points":1,"partial":true,"values":{"temp_c":{"count":1,"sum":20,"mean":20,"min":20,"max":20,"first":20,"first_time":"2026-06-01T07:50:00Z","last":20,"last_time":"2026-06-01T07:50:00Z"}}} <nil>
	// {"start":"2026-06-01T08:00:00Z","end":"2026-06-01T09:00:00Z","points":0,"values":{"temp_c":{"count":0,"sum":0,"mean":null,"min":null,"max":null,"first":null,"last":null}}} <nil>
}

// The day on which daylight saving time starts, and the hours of a zone with an offset of half an hour.
func ExampleGrid() {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		log.Fatal(err)
	}
	kolkata, err := time.LoadLocation("Asia/Kolkata")
	if err != nil {
		log.Fatal(err)
	}
	t := time.Date(2026, 3, 29, 10, 15, 0, 0, time.UTC)
	day, hour := window.Days(1).In(berlin), window.Every(time.Hour).In(kolkata)
	fmt.Println(day.Start(t).Format(time.RFC3339), day.Next(t).Sub(day.Start(t)))
	fmt.Println(hour.Start(t).Format(time.RFC3339), hour.Start(t).UTC().Format(time.TimeOnly))
	// Output:
	// 2026-03-29T00:00:00+01:00 23h0m0s
	// 2026-03-29T15:00:00+05:30 09:30:00
}

func ExampleParse() {
	for _, s := range []string{"15m", "1d", "2w", "1mo", "soon"} {
		g, err := window.Parse(s)
		fmt.Println(g, err)
	}
	// Output:
	// 15m0s <nil>
	// 1d <nil>
	// 2w <nil>
	// 1mo <nil>
	// no grid tsdb: invalid input: width is "soon"; want a duration, or a number with d, w or mo: 15m, 1h, 1d, 1w, 1mo
}

// With a narrow grid, a long gap ends with an error at the limit.
func ExampleOptions() {
	narrow, err := window.New(window.Every(time.Nanosecond), []window.Measure[Reading]{{Name: "temp_c", Of: tempC}}, window.Options{
		Gaps:      window.Linear,
		MaxFilled: 1000,
	})
	if err != nil {
		log.Fatal(err)
	}
	buckets := 0
	for _, err := range narrow.Over(points(reading("07:10", 18), reading("10:05", 25)), tsdb.AllTime(), tsdb.OldestFirst) {
		if err != nil {
			fmt.Println(err)
			break
		}
		buckets++
	}
	fmt.Println(buckets)
	// Output:
	// window: gaps hold too many buckets: more than 1000 of 1ns
	// 1
}

func ExampleSummary() {
	daily, err := window.New(window.Days(1), []window.Measure[Reading]{{Name: "temp_c", Of: tempC}}, window.Options{})
	if err != nil {
		log.Fatal(err)
	}
	for b, err := range daily.Over(points(reading("07:10", 18), reading("12:00", 26), reading("20:00", 22)), tsdb.AllTime(), tsdb.OldestFirst) {
		s := b.Values[0]
		fmt.Println(s.Name, s.Count, s.Sum, s.Mean, s.Min, s.Max, s.First, s.Last, err)
	}
	// Output: temp_c 3 66 22 18 26 18 22 <nil>
}

// A repository is a Ranger.
func ExampleRanger() {
	var _ window.Ranger[Reading] = (*tsdb.Repository[Reading])(nil)
	fmt.Println("it is")
	// Output: it is
}
