package dynamic_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/dynamic"
	"github.com/tidemark-go/tidemark/tsdb/embedded"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

// A tool lists what is stored in a table.
func ExampleDescribe() {
	ctx := context.Background()
	store, err := embedded.New(ctx, embedded.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	stored(ctx, store) // another program has defined datasets

	for d, err := range store.Datasets(ctx) {
		if err != nil { // a damaged entry: the others follow
			fmt.Println(err)
			continue
		}
		of := dynamic.Describe(d)
		fmt.Println(of.Name, of.Key, of.Precision, of.Tags, of.Classes[0].Policy)
	}
	// Output:
	// doors [{building text} {floor int2}] ns [rec] never
	// readings [{site text} {device text}] ms [json] maxage=90d
}

// stored is what another program has done.
func stored(ctx context.Context, store *tsdb.Store) {
	readings := tsdb.MustDefine("readings", tsdb.Key("site", "device"), codec.JSON[map[string]any](), tsdb.SchemaOptions{Retention: d90, Precision: tsdb.Milliseconds})
	doors := tsdb.MustDefine("doors", tsdb.Key("building").Int("floor", 2), codec.Records(), tsdb.SchemaOptions{})
	if err := store.Ensure(ctx, readings, doors); err != nil {
		log.Fatal(err)
	}
}

// A gateway reads datasets of other programs: all fields of the newest points, and one number by the hour.
func Example() {
	ctx := context.Background()
	store, err := embedded.New(ctx, embedded.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	storedPoints(ctx, store) // another program has stored readings

	temperature, err := dynamic.NewField("motor.temp_c", dynamic.Options{})
	if err != nil {
		log.Fatal(err)
	}
	acme := tenant.MustParse("acme")
	for d, err := range store.Datasets(ctx) {
		if err != nil {
			log.Fatal(err)
		}
		values, err := dynamic.Schema(d, dynamic.Options{})
		if err != nil {
			log.Fatal(err) // it has payloads of a tag that nothing decodes
		}
		for p, err := range values.For(store, acme).Under(tsdb.AllEntities()).Latest(ctx) {
			if err != nil {
				log.Fatal(err)
			}
			fmt.Println(d.Name(), p.Entity, p.Time.Format("15:04"), p.Value)
		}

		numbers, err := dynamic.Numbers(d, temperature)
		if err != nil {
			log.Fatal(err)
		}
		hourly, err := window.New(window.Every(time.Hour), []window.Measure[codec.Value]{{Name: "temp_c", Of: codec.Value.Number}}, window.Options{})
		if err != nil {
			log.Fatal(err)
		}
		noon := tsdb.Between(start, start.Add(time.Hour))
		for b, err := range hourly.Read(ctx, numbers.For(store, acme), tsdb.NewEntity("berlin", "press-1"), noon) {
			if err != nil {
				log.Fatal(err)
			}
			fmt.Println("mean", b.Values[0].Mean, "of", b.Values[0].Count)
		}
	}
	// Output:
	// readings berlin/press-1 12:10 {motor.temp_c=82i on=true}
	// mean 81 of 2
}

// storedPoints is what another program has done.
func storedPoints(ctx context.Context, store *tsdb.Store) {
	readings := tsdb.MustDefine("readings", tsdb.Key("site", "device"), codec.JSON[map[string]any](), tsdb.SchemaOptions{})
	if err := store.Ensure(ctx, readings); err != nil {
		log.Fatal(err)
	}
	for i, temperature := range []float64{80, 82} {
		v := map[string]any{"motor": map[string]any{"temp_c": temperature}, "on": true}
		if err := readings.For(store, tenant.MustParse("acme")).Put(ctx, tsdb.NewEntity("berlin", "press-1"), start.Add(time.Duration(i)*10*time.Minute), v); err != nil {
			log.Fatal(err)
		}
	}
}

// The fields that a tenant's points have, for a list of what can be charted.
func ExampleFieldsOf() {
	ctx := context.Background()
	store, err := embedded.New(ctx, embedded.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	storedPoints(ctx, store) // another program has stored readings

	for d, err := range store.Datasets(ctx) {
		if err != nil {
			log.Fatal(err)
		}
		list, err := dynamic.FieldsOf(ctx, store, tenant.MustParse("acme"), d)
		if err != nil {
			log.Fatal(err)
		}
		for _, f := range list.Fields {
			fmt.Println(f.Name, f.Kinds, f.First.Format(time.DateOnly), f.Last.Format(time.DateOnly))
		}
	}
	// Output:
	// motor.temp_c [int] 2026-06-01 2026-06-01
	// on [bool] 2026-06-01 2026-06-01
}

// One number of a payload, wherever the payload comes from.
func ExampleField_Number() {
	temperature, err := dynamic.NewField("motor.temp_c", dynamic.Options{})
	if err != nil {
		log.Fatal(err)
	}
	for _, payload := range []string{`{"motor":{"rpm":1200,"temp_c":81.5}}`, `{"motor.temp_c":"82"}`, `{"motor":{"temp_c":null}}`} {
		v, err := temperature.Number("json", []byte(payload))
		fmt.Println(v, err)
	}
	// Output:
	// 81.5 <nil>
	// 82i <nil>
	// invalid <nil>
}

// All fields of a payload.
func ExampleDecoder() {
	var decoder dynamic.Decoder
	fields, err := decoder.Decode("json", []byte(`{"motor":{"rpm":1200,"temp_c":81.5},"name":"press-1","errors":[]}`))
	for name, v := range fields.All() {
		fmt.Println(name, v)
	}
	fmt.Println(err)
	// Output:
	// errors []
	// motor.rpm 1200i
	// motor.temp_c 81.5
	// name "press-1"
	// <nil>
}
