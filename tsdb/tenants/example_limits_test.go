package tenants_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tenant/limit"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/embedded"
	"github.com/tidemark-go/tidemark/tsdb/tenants"
)

// The store takes limits from profiles. Tenants without limits of their own have the defaults.
func ExampleProfile_limits() {
	ctx := context.Background()
	defaults, err := limit.New(limit.Table{Defaults: limit.Limits{PointsPerSecond: 100, PointBytes: 1000}}, limit.Options{})
	if err != nil {
		log.Fatal(err)
	}
	store, err := embedded.New(ctx, embedded.Options{StoreOptions: tsdb.StoreOptions{Limits: defaults, ProfileLimits: true}})
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	if err := store.Ensure(ctx, notes); err != nil {
		log.Fatal(err)
	}
	acme := tenant.MustParse("acme")
	onboard := func(limits string) error {
		_, err := tenants.Onboard(ctx, store, acme, tenants.Profile{Limits: json.RawMessage(limits)}, tenants.OnboardOptions{Replace: true})
		return err
	}
	fmt.Println(errors.Is(onboard(`{"points": 10}`), tsdb.ErrInvalid)) // no such limit
	if err := onboard(`{"points_per_second": 1}`); err != nil {
		log.Fatal(err)
	}
	write := func() error {
		return notes.For(store, acme).Put(ctx, tsdb.NewEntity("berlin"), time.Now(), "all quiet")
	}
	fmt.Println(write())
	fmt.Println(errors.Is(write(), limit.ErrExceeded))
	fmt.Println(defaults.Limits(acme).PointBytes)
	// Output:
	// true
	// <nil>
	// true
	// 1000
}
