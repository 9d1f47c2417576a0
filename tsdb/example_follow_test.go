package tsdb_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/embedded"
)

// A map of one depot's vehicles shows each position when it arrives. After a restart it continues where it was.
func ExampleFollower() {
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
	berlin, truck, paris := tsdb.NewPrefix("berlin"), tsdb.NewEntity("berlin", "truck-1"), tsdb.NewEntity("paris", "truck-9")
	drive := func(e tsdb.Entity, at time.Time, speed float64) {
		if err := fleet.Put(ctx, e, at, TruckPosition{SpeedKmh: speed}); err != nil {
			log.Fatal(err)
		}
	}
	// show prints positions up to the one with this speed, and returns where it is.
	show := func(f *tsdb.Follower[TruckPosition], last float64) string {
		for p, err := range f.Points(ctx) {
			if err != nil {
				log.Fatal(err)
			}
			fmt.Println(p.Entity, p.Value.SpeedKmh, "km/h")
			if p.Value.SpeedKmh == last {
				break
			}
		}
		return f.Cursor()
	}

	f, err := fleet.Under(berlin).Follow(ctx, tsdb.FollowOptions{})
	if err != nil {
		log.Fatal(err)
	}
	now := time.Now()
	drive(truck, now, 60)
	drive(paris, now, 99)
	drive(truck, now.Add(-time.Hour), 55) // an hour late, and written by this process
	position := show(f, 55)
	f.Close()

	drive(truck, now.Add(time.Second), 30) // while nobody follows

	f, err = fleet.Under(berlin).Follow(ctx, tsdb.FollowOptions{After: position})
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	show(f, 30)
	// Output:
	// berlin/truck-1 60 km/h
	// berlin/truck-1 55 km/h
	// berlin/truck-1 30 km/h
}
