package tsdb_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/embedded"
	"github.com/tidemark-go/tidemark/tsdb/tenants"
)

// A tenant that pays for it keeps its readings for 30 days, all others for 7.
func ExampleSchemaOptions_classes() {
	days := func(name string, n int) gc.Class {
		return gc.Class{Name: name, Policy: gc.MaxAge(time.Duration(n) * 24 * time.Hour)}
	}
	readings := tsdb.MustDefine("readings", tsdb.Key("site", "device"), codec.Float64(), tsdb.SchemaOptions{
		Retention: days("d7", 7),
		Classes:   []gc.Class{days("d30", 30)},
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
	acme, globex := tenant.MustParse("acme"), tenant.MustParse("globex")
	if _, err := tenants.Onboard(ctx, store, acme, tenants.Profile{Retention: "d30"}, tenants.OnboardOptions{}); err != nil {
		log.Fatal(err)
	}

	roof, tenDaysAgo := tsdb.NewEntity("berlin", "roof-7"), time.Now().Add(-10*24*time.Hour)
	fmt.Println(readings.For(store, acme).Put(ctx, roof, tenDaysAgo, 21.5))
	err = readings.For(store, globex).Put(ctx, roof, tenDaysAgo, 21.5)
	fmt.Println(errors.Is(err, tsdb.ErrExpired))
	// Output:
	// <nil>
	// true
}
