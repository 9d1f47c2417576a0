package retention_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/embedded"
	"github.com/tidemark-go/tidemark/tsdb/retention"
)

// readings returns the schema of the examples, with a retention in days.
func readings(days int) *tsdb.Schema[float64] {
	return tsdb.MustDefine("readings", tsdb.Key("site", "device"), codec.Float64(), tsdb.SchemaOptions{
		Retention: gc.Class{Name: "default", Policy: gc.MaxAge(time.Duration(days) * 24 * time.Hour)},
	})
}

// opened returns a store in memory that keeps readings for 90 days.
func opened(ctx context.Context) *tsdb.Store {
	store, err := embedded.New(ctx, embedded.Options{})
	if err != nil {
		log.Fatal(err)
	}
	if err := store.Ensure(ctx, readings(90)); err != nil {
		log.Fatal(err)
	}
	return store
}

// Change the retention of readings from 90 to 30 days.
func Example() {
	ctx := context.Background()
	store := opened(ctx)
	defer store.Close()

	plan, err := retention.NewPlan(ctx, store, readings(30))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Print(plan)

	report, err := plan.Apply(ctx, store, retention.ApplyOptions{Allow: []string{"default"}})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Print(report)
	// Output:
	// Retention plan for projects/local/instances/local/tables/tidemark
	//
	//   ~ change       default      maxage=90d -> maxage=30d   DESTRUCTIVE
	//       holds points of readings
	//       Data older than 30d becomes invisible at once to programs that declare this policy, and is deleted within about a week. This cannot be undone.
	//   = record       dataset readings
	//       Dataset readings: policy of retention class default declared as maxage=30d, stored as maxage=90d.
	//
	// 0 to create, 1 to change, 0 drifted, 1 to record.
	// Data is deleted. To apply the plan, allow: default
	// Applied to projects/local/instances/local/tables/tidemark:
	//   change default: maxage=90d -> maxage=30d (destructive)
	//   record dataset readings
}

// A pipeline writes a plan, has it approved, and applies the approved file.
func ExamplePlan() {
	ctx := context.Background()
	store := opened(ctx)
	defer store.Close()

	plan, err := retention.NewPlan(ctx, store, readings(180))
	if err != nil {
		log.Fatal(err)
	}
	file, err := json.Marshal(plan)
	if err != nil {
		log.Fatal(err)
	}

	approved, err := retention.ReadPlan(bytes.NewReader(file))
	if err != nil {
		log.Fatal(err)
	}
	for range 2 {
		report, err := approved.Apply(ctx, store, retention.ApplyOptions{})
		fmt.Println(len(report.Applied), err)
	}
	// Output:
	// 2 <nil>
	// 0 <nil>
}

func ExamplePlan_Destructive() {
	ctx := context.Background()
	store := opened(ctx)
	defer store.Close()

	plan, err := retention.NewPlan(ctx, store, readings(30))
	if err != nil {
		log.Fatal(err)
	}
	_, err = plan.Apply(ctx, store, retention.ApplyOptions{})
	fmt.Println(errors.Is(err, retention.ErrNotAllowed), plan.Destructive())
	// Output: true [default]
}

// An operator's tool without schemas plans from the catalogue.
func ExampleNewPlanFor() {
	ctx := context.Background()
	store := opened(ctx)
	defer store.Close()

	drift, err := retention.NewPlanFor(ctx, store, nil)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(drift.Drifted(), drift.Empty())

	longer, err := retention.NewPlanFor(ctx, store, map[string]gc.Policy{"default": gc.Never()})
	if err != nil {
		log.Fatal(err)
	}
	for _, item := range longer.Items() {
		fmt.Println(item.Kind, cmp.Or(item.Family, item.Dataset))
	}
	// Output:
	// false true
	// change default
	// record readings
}

func ExampleItem() {
	ctx := context.Background()
	store := opened(ctx)
	defer store.Close()

	plan, err := retention.NewPlan(ctx, store, readings(30))
	if err != nil {
		log.Fatal(err)
	}
	for _, item := range plan.Items() {
		if item.Kind == "record" {
			fmt.Println("the catalogue lags behind in", item.Dataset)
		}
	}
	// Output: the catalogue lags behind in readings
}

func ExampleApplyOptions() {
	ctx := context.Background()
	store := opened(ctx)
	defer store.Close()

	plan, err := retention.NewPlan(ctx, store, readings(30))
	if err != nil {
		log.Fatal(err)
	}
	_, err = plan.Apply(ctx, store, retention.ApplyOptions{Allow: []string{"defualt"}})
	fmt.Println(err)
	// Output: tsdb: invalid input: Allow is "defualt"; want a class or family of a destructive step: default
}

func ExampleReport() {
	ctx := context.Background()
	store := opened(ctx)
	defer store.Close()

	plan, err := retention.NewPlan(ctx, store, readings(90))
	if err != nil {
		log.Fatal(err)
	}
	report, err := plan.Apply(ctx, store, retention.ApplyOptions{})
	fmt.Print(report)
	fmt.Println(err)
	// Output:
	// Nothing was changed in projects/local/instances/local/tables/tidemark.
	// <nil>
}
