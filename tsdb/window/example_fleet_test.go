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

// Position is what the tracker of a vehicle sends while it drives.
type Position struct {
	Lat, Lon float64
	SpeedKmh float64
	Metres   int64 // since the vehicle was built
	Ignition bool
}

// Two datasets of a fleet: the tracker sends a position every 10 minutes, and the tank its litres now and then.
var (
	positions = tsdb.MustDefine("positions", tsdb.Key("depot", "vehicle"), codec.JSON[Position](), tsdb.SchemaOptions{})
	tanks     = tsdb.MustDefine("tanks", tsdb.Key("depot", "vehicle"), codec.Float64(), tsdb.SchemaOptions{})
)

var shiftStart = time.Date(2026, 6, 1, 8, 0, 0, 0, time.UTC)

// fleetStore has a morning of two vehicles. The tracker of truck-1 is silent from 8:30 to 9:40.
func fleetStore(ctx context.Context) (store *tsdb.Store, trackers *tsdb.Repository[Position], fuel *tsdb.Repository[float64]) {
	store, err := embedded.New(ctx, embedded.Options{})
	if err != nil {
		log.Fatal(err)
	}
	if err := store.Ensure(ctx, positions, tanks); err != nil {
		log.Fatal(err)
	}
	acme := tenant.MustParse("acme")
	trackers, fuel = positions.For(store, acme), tanks.For(store, acme)
	var sent []tsdb.Point[Position]
	for minutes := 0; minutes <= 120; minutes += 10 {
		at := shiftStart.Add(time.Duration(minutes) * time.Minute)
		if minutes <= 30 || minutes >= 100 {
			sent = append(sent, tsdb.Point[Position]{Entity: truck1, Time: at, Value: Position{SpeedKmh: 60, Metres: int64(minutes) * 1000, Ignition: true}})
		}
		sent = append(sent, tsdb.Point[Position]{Entity: truck2, Time: at, Value: Position{SpeedKmh: 30, Metres: int64(minutes) * 500, Ignition: minutes%60 < 30}})
	}
	if _, err := trackers.PutMany(ctx, sent); err != nil {
		log.Fatal(err)
	}
	for minutes, litres := range map[int]float64{-5: 80, 45: 74.5, 110: 68} {
		if err := fuel.Put(ctx, truck1, shiftStart.Add(time.Duration(minutes)*time.Minute), litres); err != nil {
			log.Fatal(err)
		}
	}
	return store, trackers, fuel
}

var truck1, truck2 = tsdb.NewEntity("berlin", "truck-1"), tsdb.NewEntity("berlin", "truck-2")

// The distance of each depot by the hour: each vehicle's own metres, added up. And how long engines ran.
func ExampleAggregator_ReadGroup() {
	ctx := context.Background()
	store, trackers, _ := fleetStore(ctx)
	defer store.Close()
	hourly, err := window.New(window.Every(time.Hour), []window.Measure[Position]{
		{Name: "km", Kind: window.Counter, Int: func(p Position) (int64, bool) { return p.Metres, true }, Decimals: 3},
		{Name: "ignition", Kind: window.State, Text: func(p Position) (string, bool) { return fmt.Sprint(p.Ignition), true }, MaxGap: 15 * time.Minute},
	}, window.Options{})
	if err != nil {
		log.Fatal(err)
	}
	in := tsdb.Between(shiftStart, shiftStart.Add(2*time.Hour))
	for b, err := range hourly.ReadGroup(ctx, trackers, []tsdb.Entity{truck1, truck2}, in, tsdb.OldestFirst) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(b.Start.Format("15:04"), b.Entities, "vehicles,", b.Values[0].Exact().Increase, "km, on for", b.Values[1].States.Time("true"))
	}
	for depot, err := range hourly.ReadGroups(ctx, trackers.Under(tsdb.AllEntities()), 1, in, tsdb.OldestFirst) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(depot.Prefix, depot.Buckets[0].Values[0].Exact().Increase, "km in the first hour")
	}
	// Output:
	// 08:00 2 vehicles, 55 km, on for 1h15m0s
	// 09:00 2 vehicles, 110 km, on for 50m0s
	// berlin 55 km in the first hour
}

// When was the tracker silent for more than a quarter of an hour, and how long was it up?
func ExampleOutages() {
	ctx := context.Background()
	store, trackers, _ := fleetStore(ctx)
	defer store.Close()
	in := tsdb.Between(shiftStart, shiftStart.Add(3*time.Hour))
	for o, err := range window.Outages(ctx, trackers, truck1, in, 15*time.Minute, tsdb.OldestFirst) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println("silent from", o.From.Format("15:04"), "over:", !o.To.IsZero())
	}
	for hour, err := range window.ReadUptime(ctx, window.Every(time.Hour), trackers, truck1, in, 15*time.Minute, tsdb.OldestFirst) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(hour.Start.Format("15:04"), "up", hour.Up, "down", hour.Down)
	}
	// Output:
	// silent from 08:30 over: true
	// silent from 10:00 over: false
	// 08:00 up 30m0s down 30m0s
	// 09:00 up 20m0s down 40m0s
	// 10:00 up 0s down 1h0m0s
}

// Speed and fuel come from two datasets, at different times. A speed that is older than 20 minutes is missing.
func ExampleAlign() {
	ctx := context.Background()
	store, trackers, fuel := fleetStore(ctx)
	defer store.Close()
	series := []window.Series[float64]{
		window.NewSeries(trackers, truck1, func(p Position) (float64, bool) { return p.SpeedKmh, true }),
		window.NewSeries(fuel, truck1, func(litres float64) (float64, bool) { return litres, true }),
	}
	in := tsdb.Between(shiftStart, shiftStart.Add(2*time.Hour))
	for row, err := range window.Align(ctx, window.Every(30*time.Minute), in, series[:1], window.AlignOptions{MaxAge: 20 * time.Minute, Order: tsdb.OldestFirst}) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(row.Time.Format("15:04"), row.Values[0].Value, "km/h, known:", row.Values[0].OK)
	}
	// The speed as of each reading of the tank.
	for row, err := range window.Align(ctx, window.Grid{}, in, series, window.AlignOptions{Order: tsdb.OldestFirst}) {
		if err != nil {
			log.Fatal(err)
		}
		if speed, litres := row.Values[0], row.Values[1]; litres.Time.Equal(row.Time) {
			fmt.Println(row.Time.Format("15:04"), litres.Value, "l, at", speed.Value, "km/h at", speed.Time.Format("15:04"))
		}
	}
	// Output:
	// 08:00 60 km/h, known: true
	// 08:30 60 km/h, known: true
	// 09:00 0 km/h, known: false
	// 09:30 0 km/h, known: false
	// 08:45 74.5 l, at 60 km/h at 08:30
	// 09:50 68 l, at 60 km/h at 09:50
}
