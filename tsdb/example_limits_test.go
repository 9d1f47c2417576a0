package tsdb_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tenant/limit"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/embedded"
)

func ExampleStoreOptions_limits() {
	ctx := context.Background()
	limiter, err := limit.New(limit.Table{Defaults: limit.Limits{PointsPerSecond: 1, PointsBurst: 2}}, limit.Options{})
	if err != nil {
		log.Fatal(err)
	}
	temps := tsdb.MustDefine("temps", tsdb.Key("device"), codec.Float64(), tsdb.SchemaOptions{})
	store, err := embedded.New(ctx, embedded.Options{StoreOptions: tsdb.StoreOptions{Limits: limiter}})
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	if err := store.Ensure(ctx, temps); err != nil {
		log.Fatal(err)
	}

	repo := temps.For(store, tenant.MustParse("acme"))
	now := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	for i := range 3 {
		err := repo.Put(ctx, tsdb.NewEntity("roof-7"), now.Add(time.Duration(i)), 21.5)
		if e, ok := errors.AsType[*limit.Error](err); ok {
			fmt.Println(e.ID, "of", e.Tenant, "- try again within a second:", e.RetryAfter <= time.Second)
		} else {
			fmt.Println(err)
		}
	}
	// Output:
	// <nil>
	// <nil>
	// points_per_second of acme - try again within a second: true
}
