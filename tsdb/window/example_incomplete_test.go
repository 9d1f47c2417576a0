package window_test

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
	"github.com/tidemark-go/tidemark/tsdb/rollup"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

// A tool reads the rollup of another program, which alone can compute what no worker has stored yet.
func ExampleIncomplete() {
	ctx := context.Background()
	store, err := embedded.New(ctx, embedded.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	hour := rollup.MustDefine("hour", window.Every(time.Hour), []rollup.Measure[float64]{
		{Name: "celsius", Of: func(kelvin float64) (float64, bool) { return kelvin - 273, true }, Max: 1000},
	}, rollup.Options{})
	temps := tsdb.MustDefine("temps", tsdb.Key("device"), codec.Float64(), tsdb.SchemaOptions{Rollups: []tsdb.Rollup{hour}})
	if err := store.Ensure(ctx, temps); err != nil {
		log.Fatal(err)
	}
	acme, roof := tenant.MustParse("acme"), tsdb.NewEntity("roof-7")
	if err := temps.For(store, acme).Put(ctx, roof, time.Now(), 293); err != nil {
		log.Fatal(err)
	}

	for d := range store.Datasets(ctx) {
		rollups, schema, err := dynamic.Rollups(d, dynamic.Options{})
		if err != nil {
			log.Fatal(err)
		}
		for b, err := range rollup.For(rollups["hour"], schema.For(store, acme)).Buckets(ctx, roof, tsdb.AllTime()) {
			if err != nil {
				log.Fatal(err)
			}
			if b.Incomplete != nil {
				fmt.Println("stored points:", b.Incomplete.Points, "missing:", b.Values[0].Missing)
			}
		}
	}
	// Output:
	// stored points: 0 missing: count+sum+min+max
}
