package tsdb_test

import (
	"context"
	"fmt"
	"log"
	"math"
	"time"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
)

// The questions that schemas for time series are designed by. Two more are answered beside the calls that answer them:
// the most recent location of a mobile device (Repository.Latest), and all buses of one company on one route
// (PrefixReader.Latest).

// A month of temperature readings of one device. They are stored next to each other, so this is one scan over the
// month's rows, whatever else the device and others have sent.
func ExampleRepository_Range_month() {
	store := open(weather)
	defer store.Close()
	ctx := context.Background()
	repo := weather.For(store, tenant.MustParse("acme"))
	roof := tsdb.NewEntity("berlin", "roof-7")
	var points []tsdb.Point[Reading]
	for t := time.Date(2026, 4, 15, 0, 0, 0, 0, time.UTC); t.Before(noon); t = t.Add(6 * time.Hour) {
		points = append(points, tsdb.Point[Reading]{Entity: roof, Time: t, Value: Reading{TempC: float64(t.YearDay()) / 10}})
	}
	if _, err := repo.PutMany(ctx, points); err != nil {
		log.Fatal(err)
	}

	from := time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC)
	may := tsdb.Between(from, from.AddDate(0, 1, 0))
	count, lowest, highest := 0, math.Inf(1), math.Inf(-1)
	for p, err := range repo.Range(ctx, roof, may, tsdb.OldestFirst) {
		if err != nil {
			log.Fatal(err)
		}
		lowest, highest = min(lowest, p.Value.TempC), max(highest, p.Value.TempC)
		count++
	}
	fmt.Println(count, "readings, from", lowest, "to", highest)
	// Output: 124 readings, from 12.1 to 15.1
}

// All application events per day per user. The key is the user, and a day is an interval: in the user's own time zone,
// which a day in the key could not be.
func ExampleRepository_Range_eventsPerDay() {
	events := tsdb.MustDefine("events", tsdb.Key().ReversedID("user"), codec.String(), tsdb.SchemaOptions{})
	store := open(events)
	defer store.Close()
	ctx := context.Background()
	repo := events.For(store, tenant.MustParse("acme"))
	tokyo := time.FixedZone("JST", 9*60*60)
	user, err := events.Entity(1042) // consecutive numbers would fill the table at its end, so the key reverses them
	if err != nil {
		log.Fatal(err)
	}
	for i, what := range []string{"sign in", "search", "order", "sign out", "sign in"} {
		t := time.Date(2026, 6, 1, 19, 0, 0, 0, tokyo).Add(time.Duration(i) * 2 * time.Hour)
		if err := repo.Put(ctx, user, t, what); err != nil {
			log.Fatal(err)
		}
	}

	for day := range 2 {
		midnight := time.Date(2026, 6, 1+day, 0, 0, 0, 0, tokyo)
		fmt.Println(midnight.Format("Jan 2"))
		for p, err := range repo.Range(ctx, user, tsdb.Between(midnight, midnight.AddDate(0, 0, 1)), tsdb.OldestFirst) {
			if err != nil {
				log.Fatal(err)
			}
			fmt.Println(" ", p.Time.In(tokyo).Format("15:04"), p.Value)
		}
	}
	// Output:
	// Jun 1
	//   19:00 sign in
	//   21:00 search
	//   23:00 order
	// Jun 2
	//   01:00 sign out
	//   03:00 sign in
}

// All application events of a day by user, for a small number of users. Entities reads the users from the table.
func ExamplePrefixReader_Entities_eventsPerUser() {
	events := tsdb.MustDefine("events", tsdb.Key("user"), codec.String(), tsdb.SchemaOptions{})
	store := open(events)
	defer store.Close()
	ctx := context.Background()
	repo := events.For(store, tenant.MustParse("acme"))
	for user, what := range map[string][]string{"ada": {"sign in", "order"}, "bob": {"search"}} {
		for i, what := range what {
			if err := repo.Put(ctx, tsdb.NewEntity(user), noon.Add(time.Duration(i)*time.Hour), what); err != nil {
				log.Fatal(err)
			}
		}
	}

	today := tsdb.Between(noon.Truncate(24*time.Hour), noon.Truncate(24*time.Hour).AddDate(0, 0, 1))
	for user, err := range repo.Under(tsdb.AllEntities()).Entities(ctx, tsdb.AllTime()) {
		if err != nil {
			log.Fatal(err)
		}
		for p, err := range repo.Range(ctx, user, today, tsdb.OldestFirst) {
			if err != nil {
				log.Fatal(err)
			}
			fmt.Println(user, p.Time.Format("15:04"), p.Value)
		}
	}
	// Output:
	// ada 12:00 sign in
	// ada 13:00 order
	// bob 12:00 search
}
