package limit_test

import (
	"context"
	"encoding/json"
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

var (
	temps = tsdb.MustDefine("temps", tsdb.Key("device"), codec.Bytes(), tsdb.SchemaOptions{})
	roof  = tsdb.NewEntity("roof-7")
	noon  = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
)

// openStore opens a store in memory.
func openStore(ctx context.Context, opts tsdb.StoreOptions) *tsdb.Store {
	store, err := embedded.New(ctx, embedded.Options{StoreOptions: opts})
	if err == nil {
		err = store.Ensure(ctx, temps)
	}
	if err != nil {
		log.Fatal(err)
	}
	return store
}

func ExampleLimiter() {
	limiter, err := limit.New(limit.Table{Defaults: limit.Limits{PointsPerSecond: 1, PointsBurst: 2}}, limit.Options{})
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	store := openStore(ctx, tsdb.StoreOptions{Limits: limiter})
	defer store.Close()
	acme := temps.For(store, tenant.MustParse("acme"))
	for i := range 3 {
		err := acme.Put(ctx, roof, noon.Add(time.Duration(i)*time.Second), []byte("21.5"))
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

func ExampleLimiter_Set() {
	limiter, err := limit.New(limit.Table{}, limit.Options{})
	if err != nil {
		log.Fatal(err)
	}
	// When a file has changed, or on a signal:
	reload := func(data []byte) error {
		table, err := limit.Parse(data)
		if err != nil {
			return err // the limits before stay in force
		}
		return limiter.Set(table)
	}
	fmt.Println(reload([]byte(`{"defaults": {"entities": 1000}}`)))
	fmt.Println(reload([]byte(`{"defaults": {"entity": 1000}}`)))
	fmt.Println(limiter.Limits(tenant.MustParse("acme")).Entities)
	// Output:
	// <nil>
	// limit: invalid limits: defaults.entity is unknown; want a limit, such as points_per_second
	// 1000
}

func ExampleParse() {
	table, err := limit.Parse([]byte(`{
		"share": 0.25,
		"defaults": {"points_per_second": 1000, "concurrent_reads": 20},
		"overrides": {"acme": {"points_per_second": 10000}}
	}`))
	if err != nil {
		log.Fatal(err)
	}
	limiter, err := limit.New(table, limit.Options{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(limiter.Limits(tenant.MustParse("acme")).PointsPerSecond, "a second in this process of four")
	// Output: 2500 a second in this process of four
}

func ExampleTable() {
	usual := limit.Limits{PointsPerSecond: 1000, RangeLength: 31 * 24 * time.Hour}
	large := usual
	large.PointsPerSecond = 50_000
	table := limit.Table{
		Defaults:  usual,
		Overrides: map[tenant.ID]limit.Limits{tenant.MustParse("acme"): large},
		Share:     0.5, // two processes
	}
	text, err := json.Marshal(table)
	if err != nil {
		log.Fatal(err)
	}
	parsed, err := limit.Parse(text)
	fmt.Println(parsed.Overrides[tenant.MustParse("acme")] == large, err)
	// Output: true <nil>
}

func ExampleLimits() {
	text, err := json.Marshal(limit.Limits{PointsPerSecond: 1000, RangeLength: 24 * time.Hour})
	fmt.Println(string(text), err)
	// Output: {"points_per_second":1000,"range_length":"24h0m0s"} <nil>
}

func ExampleOptions() {
	now := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	limiter, err := limit.New(limit.Table{Defaults: limit.Limits{PointsPerSecond: 2}}, limit.Options{Clock: func() time.Time { return now }})
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	store := openStore(ctx, tsdb.StoreOptions{Limits: limiter})
	defer store.Close()
	acme := temps.For(store, tenant.MustParse("acme"))
	through := 0
	for i := range 100 {
		if acme.Put(ctx, roof, now.Add(time.Duration(i)*time.Second), []byte("21.5")) == nil {
			through++
		}
	}
	fmt.Println(through)
	// Output: 2
}

func ExampleError() {
	limiter, err := limit.New(limit.Table{Defaults: limit.Limits{RangeLength: 24 * time.Hour}}, limit.Options{})
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	store := openStore(ctx, tsdb.StoreOptions{Limits: limiter})
	defer store.Close()
	acme := temps.For(store, tenant.MustParse("acme"))
	_, err = acme.Page(ctx, roof, tsdb.Between(noon, noon.Add(48*time.Hour)), 100, "")
	fmt.Println(err)
	if e, ok := errors.AsType[*limit.Error](err); ok {
		fmt.Println(e.ID, time.Duration(e.Limit), time.Duration(e.Used), "waiting helps:", e.RetryAfter > 0)
	}
	// Output:
	// limit: exceeded: range_length of acme is 24h0m0s, this would be 48h0m0s
	// range_length 24h0m0s 48h0m0s waiting helps: false
}

func ExampleID() {
	// A service can count rejections by limit, and document the limits by the same names.
	refusals := map[limit.ID]int{}
	limiter, err := limit.New(limit.Table{Defaults: limit.Limits{PointBytes: 100}}, limit.Options{})
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	store := openStore(ctx, tsdb.StoreOptions{Limits: limiter})
	defer store.Close()
	acme := temps.For(store, tenant.MustParse("acme"))
	for range 3 {
		err := acme.Put(ctx, roof, noon, make([]byte, 200))
		if e, ok := errors.AsType[*limit.Error](err); ok {
			refusals[e.ID]++
		}
	}
	fmt.Println(refusals)
	// Output: map[point_bytes:3]
}

func ExampleLimiter_Wait() {
	// A writer whose producers wait for their tenant's rate instead of being rejected.
	rates, err := limit.New(limit.Table{Defaults: limit.Limits{BytesPerSecond: 1 << 20}}, limit.Options{})
	if err != nil {
		log.Fatal(err)
	}
	admit := rates.Wait // for tsdb.WriterOptions.Admit
	fmt.Println(admit(context.Background(), tenant.MustParse("acme"), 500))
	// Output: <nil>
}
