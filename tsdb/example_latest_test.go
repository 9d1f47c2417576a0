package tsdb_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
)

// Position is the position of a moving object.
type Position struct {
	Lat  float64 `json:"lat"`
	Long float64 `json:"long"`
}

// positions have the key company, route, bus. The buses of a company, and of one of its routes, are stored next to each
// other.
var positions = tsdb.MustDefine("positions", tsdb.Key("company", "route", "bus"), codec.JSON[Position](), tsdb.SchemaOptions{
	MaxFuture: time.Hour, // a device with a wrong clock does not stay the latest for years
})

var noon = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

// drive stores two positions of each of four buses.
func drive(repo *tsdb.Repository[Position]) {
	var points []tsdb.Point[Position]
	for i, bus := range []tsdb.Entity{
		tsdb.NewEntity("bvg", "M41", "bus-1"), tsdb.NewEntity("bvg", "M41", "bus-2"), tsdb.NewEntity("bvg", "M410", "bus-3"), tsdb.NewEntity("vbb", "M41", "bus-4"),
	} {
		for m := range 2 {
			points = append(points, tsdb.Point[Position]{Entity: bus, Time: noon.Add(time.Duration(m) * time.Minute), Value: Position{52 + float64(i), 13 + float64(m)}})
		}
	}
	if _, err := repo.PutMany(context.Background(), points); err != nil {
		log.Fatal(err)
	}
}

// Where are these buses now? LatestMany returns one result per bus, in order. A bus without a position has a result
// too.
func ExampleRepository_LatestMany() {
	store := open(positions)
	defer store.Close()
	repo := positions.For(store, tenant.MustParse("acme"))
	drive(repo)

	buses := []tsdb.Entity{tsdb.NewEntity("vbb", "M41", "bus-4"), tsdb.NewEntity("bvg", "M41", "bus-9"), tsdb.NewEntity("bvg", "M41", "bus-1")}
	newest, err := repo.LatestMany(context.Background(), buses, 1)
	if err != nil {
		log.Fatal(err)
	}
	for _, h := range newest {
		if len(h.Points) == 0 {
			fmt.Println(h.Entity, "has not been seen")
			continue
		}
		fmt.Println(h.Entity, h.Points[0].Time.Format(time.TimeOnly), h.Points[0].Value)
	}
	// Output:
	// vbb/M41/bus-4 12:01:00 {55 14}
	// bvg/M41/bus-9 has not been seen
	// bvg/M41/bus-1 12:01:00 {52 14}
}

// The last two positions of each of several buses.
func ExampleRepository_LatestMany_several() {
	store := open(positions)
	defer store.Close()
	repo := positions.For(store, tenant.MustParse("acme"))
	drive(repo)

	buses := []tsdb.Entity{tsdb.NewEntity("bvg", "M41", "bus-2"), tsdb.NewEntity("bvg", "M41", "bus-1")}
	histories, err := repo.LatestMany(context.Background(), buses, 2)
	if err != nil {
		log.Fatal(err)
	}
	for _, h := range histories {
		for _, p := range h.Points {
			fmt.Println(h.Entity, p.Time.Format(time.TimeOnly), p.Value)
		}
	}
	// Output:
	// bvg/M41/bus-2 12:01:00 {53 14}
	// bvg/M41/bus-2 12:00:00 {53 13}
	// bvg/M41/bus-1 12:01:00 {52 14}
	// bvg/M41/bus-1 12:00:00 {52 13}
}

// The most recent location of a mobile device.
func ExampleRepository_Latest_mobileDevice() {
	phones := tsdb.MustDefine("phones", tsdb.Key("device"), codec.JSON[Position](), tsdb.SchemaOptions{})
	store := open(phones)
	defer store.Close()
	ctx := context.Background()
	repo := phones.For(store, tenant.MustParse("acme"))
	phone := tsdb.NewEntity("phone-1234")
	for m := range 3 {
		if err := repo.Put(ctx, phone, noon.Add(time.Duration(m)*time.Minute), Position{52.5, 13.4 + float64(m)/10}); err != nil {
			log.Fatal(err)
		}
	}

	p, err := repo.Latest(ctx, phone)
	fmt.Println(p.Time.Format(time.TimeOnly), p.Value, err)
	// Output: 12:02:00 {52.5 13.6} <nil>
}

// An entity without points is not an error. One that does not fit the schema is.
func ExampleHistory() {
	store := open(weather)
	defer store.Close()
	ctx := context.Background()
	repo := weather.For(store, tenant.MustParse("acme"))
	roof := tsdb.NewEntity("berlin", "roof-7")
	if err := repo.Put(ctx, roof, noon, Reading{TempC: 21}); err != nil {
		log.Fatal(err)
	}
	histories, err := repo.LatestMany(ctx, []tsdb.Entity{roof, tsdb.NewEntity("berlin", "cellar-1"), tsdb.NewEntity("berlin")}, 10)
	for _, h := range histories {
		fmt.Println(len(h.Points), errors.Is(h.Err, tsdb.ErrInvalid))
	}
	fmt.Println(errors.Is(err, tsdb.ErrInvalid))
	// Output:
	// 1 false
	// 0 false
	// 0 true
	// true
}

// On the deadline, the results that were read are returned, and the error lists the entities that were not.
func ExampleReadError() {
	store := open(weather)
	defer store.Close()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	answers, err := weather.For(store, tenant.MustParse("acme")).LatestMany(ctx, []tsdb.Entity{tsdb.NewEntity("berlin", "roof-7")}, 1)
	var report *tsdb.ReadError
	if errors.As(err, &report) {
		for _, f := range report.Failed {
			fmt.Println(f.Index, f.Entity, errors.Is(f.Err, context.Canceled), f.Err == answers[f.Index].Err)
		}
	}
	// Output: 0 berlin/roof-7 true true
}

// A call takes options where it needs them.
func ExampleReadOption() {
	store := open(weather)
	defer store.Close()
	ctx := context.Background()
	repo := weather.For(store, tenant.MustParse("acme"))
	roof := tsdb.NewEntity("berlin", "roof-7")
	if err := repo.Put(ctx, roof, noon, Reading{TempC: 21}); err != nil {
		log.Fatal(err)
	}
	answers, err := repo.LatestMany(ctx, []tsdb.Entity{roof}, 1, tsdb.Concurrency(16), tsdb.Hedge{After: 10 * time.Millisecond, MaxRatio: 0.05})
	fmt.Println(answers[0].Points[0].Value.TempC, err)
	// Output: 21 <nil>
}

// A program that shares its connection can limit the parallel requests of a read.
func ExampleConcurrency() {
	store := open(weather)
	defer store.Close()
	_, err := weather.For(store, tenant.MustParse("acme")).LatestMany(context.Background(), nil, 1, tsdb.Concurrency(-1))
	fmt.Println(err)
	// Output: tsdb: invalid input: Concurrency is -1; want 0 for the default, or 1 to 1000
}

// A read that takes longer than nearly all others is sent a second time, for at most one read in twenty.
func ExampleHedge() {
	store := open(weather)
	defer store.Close()
	_, err := weather.For(store, tenant.MustParse("acme")).LatestMany(context.Background(), nil, 1, tsdb.Hedge{After: 10 * time.Millisecond, MaxRatio: 0.05})
	fmt.Println(err)
	// Output: <nil>
}

// The newest position of each bus of one company on one route. The program need not know the buses.
func ExamplePrefixReader_Latest() {
	store := open(positions)
	defer store.Close()
	repo := positions.For(store, tenant.MustParse("acme"))
	drive(repo)

	for p, err := range repo.Under(tsdb.NewPrefix("bvg", "M41")).Latest(context.Background()) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(p.Entity.Parts()[2], p.Time.Format(time.TimeOnly), p.Value)
	}
	// Output:
	// bus-1 12:01:00 {52 14}
	// bus-2 12:01:00 {53 14}
}

// Which buses does a company have?
func ExamplePrefixReader_Entities() {
	store := open(positions)
	defer store.Close()
	repo := positions.For(store, tenant.MustParse("acme"))
	drive(repo)

	for e, err := range repo.Under(tsdb.NewPrefix("bvg")).Entities(context.Background(), tsdb.AllTime()) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(e.Parts())
	}
	// Output:
	// [bvg M41 bus-1]
	// [bvg M41 bus-2]
	// [bvg M410 bus-3]
}
