package tsdb_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
)

// A truck sends its temperature and its door at different times, and events between them. LatestFields returns the
// newest value of each, with its time.
func ExampleRepository_LatestFields() {
	trucks := tsdb.MustDefine("trucks", tsdb.Key("fleet", "truck"), codec.Records(), tsdb.SchemaOptions{})
	store := open(trucks)
	defer store.Close()
	ctx, repo, truck := context.Background(), trucks.For(store, tenant.MustParse("acme")), tsdb.NewEntity("north", "7")
	for i, field := range []codec.Field{
		{Name: "temp", Value: codec.Float(-18.5)}, {Name: "door", Value: codec.Str("open")}, {Name: "event", Value: codec.Str("connected")},
	} {
		if err := repo.Put(ctx, truck, noon.Add(time.Duration(i)*time.Minute), codec.NewRecord(field)); err != nil {
			log.Fatal(err)
		}
	}

	f, err := repo.LatestFields(ctx, truck, tsdb.FieldOptions{})
	if err != nil {
		log.Fatal(err)
	}
	for name, at := range f.Times.All() {
		v, _ := f.Value.Lookup(name)
		fmt.Println(at.Format(time.TimeOnly), name, v)
	}
	before, err := repo.LatestFields(ctx, truck, tsdb.FieldOptions{AsOf: noon})
	fmt.Println("at noon", before.Value, err)
	// Output:
	// 12:01:00 door "open"
	// 12:02:00 event "connected"
	// 12:00:00 temp -18.5
	// at noon {temp=-18.5} <nil>
}

// FieldTimes has the time of each field; the parts of a list or a map have that of the whole.
func ExampleFieldTimes() {
	var times tsdb.FieldTimes
	at, ok := times.Of("motor.temp_c")
	fmt.Println(times.Len(), at.IsZero(), ok)
	// Output:
	// 0 true false
}

// Fields of all trucks of a fleet, of which the newest 100 points are looked at.
func ExamplePrefixReader_LatestFields() {
	store := open(positions)
	defer store.Close()
	repo := positions.For(store, tenant.MustParse("acme"))
	drive(repo)

	options := tsdb.FieldOptions{MaxPoints: 100}
	for f, err := range repo.Under(tsdb.NewPrefix("bvg", "M41")).LatestFields(context.Background(), options) {
		if err != nil {
			log.Fatal(err)
		}
		at, _ := f.Times.Of("lat")
		fmt.Println(f.Entity, f.Value, at.Format(time.TimeOnly))
	}
	// Output:
	// bvg/M41/bus-1 {52 14} 12:01:00
	// bvg/M41/bus-2 {53 14} 12:01:00
}
