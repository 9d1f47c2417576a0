package tsdb_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/embedded"
)

// TruckPosition is what a vehicle of the fleet sends.
type TruckPosition struct {
	Lat, Lon float64
	SpeedKmh float64
	FuelL    float64
}

var truckPositions = tsdb.MustDefine("positions", tsdb.Key("depot", "vehicle"), codec.JSON[TruckPosition](), tsdb.SchemaOptions{})

// A fleet of two depots: which vehicles have sent nothing for an hour, what happened at the depot in the last quarter
// of an hour, and the last two positions of each vehicle.
func ExamplePrefixReader() {
	ctx := context.Background()
	store, err := embedded.New(ctx, embedded.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	if err := store.Ensure(ctx, truckPositions); err != nil {
		log.Fatal(err)
	}
	fleet := truckPositions.For(store, tenant.MustParse("acme"))
	now := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	sent := func(depot, vehicle string, minutesAgo int, speed float64) tsdb.Point[TruckPosition] {
		return tsdb.Point[TruckPosition]{
			Entity: tsdb.NewEntity(depot, vehicle), Time: now.Add(-time.Duration(minutesAgo) * time.Minute), Value: TruckPosition{SpeedKmh: speed},
		}
	}
	if _, err := fleet.PutMany(ctx, []tsdb.Point[TruckPosition]{
		sent("berlin", "truck-1", 95, 60), sent("berlin", "truck-1", 90, 55),
		sent("berlin", "truck-2", 12, 80), sent("berlin", "truck-2", 2, 30),
		sent("berlin", "van-1", 10, 50), sent("berlin", "van-1", 5, 45),
		sent("paris", "truck-9", 200, 10),
	}); err != nil {
		log.Fatal(err)
	}

	silent, err := fleet.Under(tsdb.AllEntities()).Silent(ctx, now.Add(-time.Hour), 100)
	if err != nil {
		log.Fatal(err)
	}
	for _, s := range silent {
		fmt.Println("silent:", s.Entity, "since", s.Last.Format("15:04"))
	}
	recent := tsdb.Between(now.Add(-15*time.Minute), now)
	for p, err := range fleet.Under(tsdb.NewPrefix("berlin")).Merged(ctx, recent, tsdb.OldestFirst) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(p.Time.Format("15:04"), p.Entity, p.Value.SpeedKmh, "km/h")
	}
	for h, err := range fleet.Under(tsdb.NewPrefix("berlin")).LatestN(ctx, 2) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(h.Entity, "slowed down by", h.Points[1].Value.SpeedKmh-h.Points[0].Value.SpeedKmh, "km/h")
	}
	// Output:
	// silent: paris/truck-9 since 08:40
	// silent: berlin/truck-1 since 10:30
	// 11:48 berlin/truck-2 80 km/h
	// 11:50 berlin/van-1 50 km/h
	// 11:55 berlin/van-1 45 km/h
	// 11:58 berlin/truck-2 30 km/h
	// berlin/truck-1 slowed down by 5 km/h
	// berlin/truck-2 slowed down by 50 km/h
	// berlin/van-1 slowed down by 5 km/h
}
