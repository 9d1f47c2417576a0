package keyadvice_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"slices"
	"time"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/examples/internal/keyadvice"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/embedded"
)

// Three keys for the same readings. With the first, all new points are written in one place. With the second, ids are
// consecutive and the newest are the busiest. The third is good.
func ExampleAdvise() {
	byDay := tsdb.MustDefine("by_day", tsdb.Key("day", "device"), codec.Float64(), tsdb.SchemaOptions{})
	byNumber := tsdb.MustDefine("by_number", tsdb.Key("number"), codec.Float64(), tsdb.SchemaOptions{})
	bySite := tsdb.MustDefine("by_site", tsdb.Key("site", "device"), codec.Float64(), tsdb.SchemaOptions{})

	acme := tenant.MustParse("acme")
	first := time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC)
	sites := []string{"berlin", "lyon", "oslo", "porto"}
	var days, numbers, devices keyadvice.Sample
	for i := range 1000 {
		device := fmt.Sprintf("roof-%d", i)
		busy := 0.1
		if i >= 900 {
			busy = 5
		}
		day := first.AddDate(0, 0, i/100).Format(time.DateOnly)
		days.Entities = append(days.Entities, keyadvice.SampledEntity{Tenant: acme, Entity: tsdb.NewEntity(day, device), Rate: 1})
		numbers.Entities = append(numbers.Entities, keyadvice.SampledEntity{Tenant: acme, Entity: tsdb.NewEntity(fmt.Sprintf("%08d", i)), Rate: busy})
		devices.Entities = append(devices.Entities, keyadvice.SampledEntity{Tenant: acme, Entity: tsdb.NewEntity(sites[i%4], device), Rate: 1})
	}
	for _, of := range []struct {
		dataset tsdb.Dataset
		sample  keyadvice.Sample
	}{{byDay, days}, {byNumber, numbers}, {bySite, devices}} {
		advice, err := keyadvice.Advise(of.dataset, of.sample)
		if err != nil {
			panic(err)
		}
		fmt.Printf("%s: %d\n", of.dataset.Name(), len(advice))
		for _, a := range advice {
			fmt.Printf("  %s %s\n  %s\n  %s\n", a.Severity, a.Cause, a.Found, a.Remedy)
		}
	}
	// Output:
	// by_day: 1
	//   warning time-first
	//   Key field day holds dates or times, such as "2026-05-01". Tenant acme writes 1000 points a second, all at its newest end.
	//   Remove day from the key fields: the key of each point already ends with its time, newest first, and Range reads any interval.
	// by_number: 1
	//   warning sequential
	//   Key field number holds numbers that follow one another, such as "00000999". The tenth with the highest values holds 85% of the writes of tenant acme, 500 points a second.
	//   Declare the field as a reversed id (tsdb.KeyFields.ReversedID), or put a field before it that reads use and that spreads the entities. No change is needed if old and new values will continue to write equally.
	// by_site: 0
}

// A busy device among many.
func ExampleSample() {
	readings := tsdb.MustDefine("readings", tsdb.Key("site", "device"), codec.Float64(), tsdb.SchemaOptions{})
	var sample keyadvice.Sample
	for i := range 200 {
		sample.Entities = append(sample.Entities, keyadvice.SampledEntity{
			Tenant: tenant.MustParse("acme"),
			Entity: tsdb.NewEntity("berlin", fmt.Sprintf("roof-%d", i)),
			Rate:   1,
		})
	}
	sample.Entities[42].Rate = 3000
	advice, err := keyadvice.Advise(readings, sample)
	if err != nil {
		panic(err)
	}
	for _, a := range advice {
		fmt.Println(a.Severity, a.Cause)
		fmt.Println(a.Found)
	}
	// Output:
	// warning hot-entity
	// 1 hot entity among 200: "berlin/roof-42" of tenant acme writes 3000 points a second, 94% of all.
}

// A program that checks its keys in a test skips advice that it has decided to ignore.
func ExampleCause() {
	orders := tsdb.MustDefine("orders", tsdb.Key("number"), codec.Float64(), tsdb.SchemaOptions{})
	var sample keyadvice.Sample
	for i := range 100 {
		sample.Entities = append(sample.Entities, keyadvice.SampledEntity{Tenant: tenant.MustParse("acme"), Entity: tsdb.NewEntity(fmt.Sprintf("%06d", i))})
	}
	advice, err := keyadvice.Advise(orders, sample)
	if err != nil {
		panic(err)
	}
	for _, a := range advice {
		if a.Cause == "sequential" && a.Severity == "info" {
			continue // all orders together are far below a server's capacity
		}
		fmt.Println(a)
	}
	// Output:
}

// A sensor that sends a thousand readings of 8 bytes a second.
func ExampleSampledEntity() {
	readings := tsdb.MustDefine("readings", tsdb.Key("sensor"), codec.Float64(), tsdb.SchemaOptions{Precision: tsdb.Milliseconds, Head: tsdb.Head{Points: 5}})
	fast := keyadvice.SampledEntity{Tenant: tenant.MustParse("acme"), Entity: tsdb.NewEntity("axle-1"), Rate: 1000, Payload: 8}
	advice, err := keyadvice.Advise(readings, keyadvice.Sample{Entities: []keyadvice.SampledEntity{fast}})
	if err != nil {
		panic(err)
	}
	for _, a := range advice {
		fmt.Println(a.Cause, "-", a.Found)
	}
	// Output:
	// hot-head - 1 entity with 20 or more writes a second to a head row; the busiest is "axle-1" of tenant acme with 1000 points a second. In a day without a compaction its row grows to 659 MiB; Bigtable advises against more than 100 MiB.
}

// Advice in JSON, for programs in other languages.
func ExampleAdvice() {
	owners := tsdb.MustDefine("owners", tsdb.Key("owner"), codec.Float64(), tsdb.SchemaOptions{})
	sample := keyadvice.Sample{Entities: []keyadvice.SampledEntity{{Tenant: tenant.MustParse("acme"), Entity: tsdb.NewEntity("anna@example.com")}}}
	advice, err := keyadvice.Advise(owners, sample)
	if err != nil {
		panic(err)
	}
	text, err := json.MarshalIndent(advice, "", "  ")
	if err != nil {
		panic(err)
	}
	fmt.Println(string(text))
	// Output:
	// [
	//   {
	//     "cause": "personal-data",
	//     "severity": "critical",
	//     "field": "owner",
	//     "found": "Values of key field owner look personal: 1 of 1 like a mail address. They are not shown here.",
	//     "why": "Row keys are service data: they appear in logs, errors and Key Visualizer, and outlive what they name.",
	//     "remedy": "Store an opaque id, or a keyed hash from keys.Hasher, and set CheckKeys: keys.CheckPersonal, so that the schema rejects personal data."
	//   }
	// ]
}

// A test of a schema that fails for warnings and above.
func ExampleAdvice_severity() {
	readings := tsdb.MustDefine("readings", tsdb.Key("site", "device"), codec.Float64(), tsdb.SchemaOptions{})
	sample := keyadvice.Sample{Entities: []keyadvice.SampledEntity{{Tenant: tenant.MustParse("acme"), Entity: tsdb.NewEntity("berlin", "roof-7"), Rate: 1}}}
	advice, err := keyadvice.Advise(readings, sample)
	if err != nil {
		panic(err)
	}
	failed := slices.ContainsFunc(advice, func(a keyadvice.Advice) bool { return a.Severity != "info" })
	fmt.Println(failed)
	// Output: false
}

// Advice on a tenant's stored data, from a sample of a hundred entities.
func ExampleTakeSample() {
	numbered := tsdb.MustDefine("numbered", tsdb.Key("site", "device"), codec.Float64(), tsdb.SchemaOptions{})
	ctx := context.Background()
	store, err := embedded.New(ctx, embedded.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	if err := store.Ensure(ctx, numbered); err != nil {
		log.Fatal(err)
	}
	acme := tenant.MustParse("acme")
	noon := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	var points []tsdb.Point[float64]
	for i := range 120 {
		points = append(points, tsdb.Point[float64]{Entity: tsdb.NewEntity("berlin", fmt.Sprint(i)), Time: noon, Value: 21.5})
	}
	if _, err := numbered.For(store, acme).PutMany(ctx, points); err != nil {
		log.Fatal(err)
	}

	dataset, sample, err := keyadvice.TakeSample(ctx, store, "numbered", acme, 100)
	if err != nil {
		log.Fatal(err)
	}
	advice, err := keyadvice.Advise(dataset, sample)
	if err != nil {
		log.Fatal(err)
	}
	for _, a := range advice {
		fmt.Println(a.Severity, a.Cause, a.Field)
	}
	// Output: info unpadded-number device
}
