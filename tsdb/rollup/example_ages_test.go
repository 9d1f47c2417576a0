package rollup_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/embedded"
	"github.com/tidemark-go/tidemark/tsdb/rollup"
	"github.com/tidemark-go/tidemark/tsdb/tenants"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

// Points of most tenants are kept for 90 days and their hourly means for ever. A tenant in class d30 keeps points for
// 30 days and means for 60.
func ExampleWorker_rollupAges() {
	const day = 24 * time.Hour
	hour := rollup.MustDefine[float64]("hour", window.Every(time.Hour), nil, rollup.Options{})
	readings := tsdb.MustDefine("readings", tsdb.Key("device"), codec.Float64(), tsdb.SchemaOptions{
		Retention:  gc.Class{Name: "d90", Policy: gc.MaxAge(90 * day)},
		Classes:    []gc.Class{{Name: "d30", Policy: gc.MaxAge(30 * day)}},
		RollupAges: map[string]time.Duration{"d30": 60 * day},
		Rollups:    []tsdb.Rollup{hour},
	})
	ctx := context.Background()
	store, err := embedded.New(ctx, embedded.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	if err := store.Ensure(ctx, readings); err != nil {
		log.Fatal(err)
	}
	for name, class := range map[string]string{"acme": "d30", "globex": ""} {
		id := tenant.MustParse(name)
		if _, err := tenants.Onboard(ctx, store, id, tenants.Profile{Retention: class}, tenants.OnboardOptions{}); err != nil {
			log.Fatal(err)
		}
		kept, err := tenants.KeptFor(ctx, store, id)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(name, kept[0].Points, kept[0].Rollups)
	}
	worker, err := rollup.NewWorker(store, rollup.WorkerOptions{}, readings)
	if err != nil {
		log.Fatal(err)
	}
	pass, err := worker.Pass(ctx) // deletes hourly means of acme that started more than 60 days ago
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("trimmed", pass.Trimmed)
	// Unordered output:
	// acme maxage=30d [{hour maxage=60d}]
	// globex maxage=90d [{hour never}]
	// trimmed 0
}
