package tenants_test

import (
	"context"
	"encoding/json"
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

// notes is the schema of the examples. Tenants keep their notes for ever or for 90 days.
var notes = tsdb.MustDefine("notes", tsdb.Key("site"), codec.String(), tsdb.SchemaOptions{
	Classes: []gc.Class{{Name: "d90", Policy: gc.MaxAge(90 * 24 * time.Hour)}},
})

// opened returns a store in memory with two notes of acme and one of globex.
func opened(ctx context.Context) *tsdb.Store {
	store, err := embedded.New(ctx, embedded.Options{})
	if err != nil {
		log.Fatal(err)
	}
	if err := store.Ensure(ctx, notes); err != nil {
		log.Fatal(err)
	}
	noon := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	for name, sites := range map[string][]string{"acme": {"berlin", "paris"}, "globex": {"berlin"}} {
		for _, site := range sites {
			err := notes.For(store, tenant.MustParse(name)).Put(ctx, tsdb.NewEntity(site), noon, "all quiet")
			if err != nil {
				log.Fatal(err)
			}
		}
	}
	return store
}

func ExampleProfile() {
	ctx := context.Background()
	store := opened(ctx)
	defer store.Close()

	p, err := tenants.Onboard(ctx, store, tenant.MustParse("acme"), tenants.Profile{
		Name:      "Acme Ltd.",
		Retention: "d90",
		Limits:    json.RawMessage(`{"points_per_second":500}`),
	}, tenants.OnboardOptions{})
	fmt.Println(p.Name, p.Retention, string(p.Limits), err)

	// From now on, notes of acme are kept for 90 days. A class that no dataset offers is rejected.
	_, err = tenants.Onboard(ctx, store, tenant.MustParse("globex"), tenants.Profile{Classes: map[string]string{"notes": "d30"}}, tenants.OnboardOptions{})
	fmt.Println(err)
	// Output:
	// Acme Ltd. d90 {"points_per_second":500} <nil>
	// tsdb: invalid input: class for dataset notes is "d30"; want a class that it offers: notes (keep, d90)
}

func ExampleOnboardOptions() {
	ctx := context.Background()
	store := opened(ctx)
	defer store.Close()

	acme := tenant.MustParse("acme")
	_, err := tenants.Onboard(ctx, store, acme, tenants.Profile{Name: "Acme"}, tenants.OnboardOptions{})
	fmt.Println(err)
	_, err = tenants.Onboard(ctx, store, acme, tenants.Profile{Name: "Acme Ltd."}, tenants.OnboardOptions{})
	fmt.Println(err)
	_, err = tenants.Onboard(ctx, store, acme, tenants.Profile{Name: "Acme Ltd."}, tenants.OnboardOptions{Replace: true})
	fmt.Println(err)
	// Output:
	// <nil>
	// tenants: the tenant's row was changed by another: tenant acme has another profile
	// <nil>
}

func ExampleTenant() {
	ctx := context.Background()
	store := opened(ctx)
	defer store.Close()

	for t, err := range tenants.List(ctx, store, tenants.ListOptions{}) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(t.ID, t.Rows, t.Profile)
	}
	// Output:
	// acme true <nil>
	// globex true <nil>
}

func ExampleListOptions() {
	ctx := context.Background()
	store := opened(ctx)
	defer store.Close()

	for t := range tenants.List(ctx, store, tenants.ListOptions{After: tenant.MustParse("acme")}) {
		fmt.Println(t.ID)
	}
	// Output: globex
}

func ExampleUsageReport() {
	ctx := context.Background()
	store := opened(ctx)
	defer store.Close()

	rep, err := tenants.Usage(ctx, store, tenant.MustParse("acme"), tenants.UsageOptions{})
	fmt.Println(rep.Complete, err)
	for _, k := range rep.Kinds {
		fmt.Println(k.Dataset, k.Points, k.Entities, k.Newest)
	}
	// Output:
	// true <nil>
	// notes 2 2 2026-06-01 12:00:00 +0000 UTC
}

func ExampleDatasetUsage() {
	ctx := context.Background()
	store := opened(ctx)
	defer store.Close()

	rep, err := tenants.Usage(ctx, store, tenant.MustParse("globex"), tenants.UsageOptions{})
	if err != nil {
		log.Fatal(err)
	}
	k := rep.Kinds[0]
	fmt.Println(k.Rows, k.Bytes, k.Estimated, k.Known)
	// Output: 1 53 true true
}

func ExampleUsageOptions() {
	ctx := context.Background()
	store := opened(ctx)
	defer store.Close()

	rep, err := tenants.Usage(ctx, store, tenant.MustParse("acme"), tenants.UsageOptions{
		Exact:    true,
		Progress: func(r tenants.UsageReport) { fmt.Println(r.Kinds[0].Rows, "so far") },
	})
	fmt.Println(rep.Kinds[0].Bytes, err)
	// Output:
	// 2 so far
	// 101 <nil>
}

func ExampleReport() {
	ctx := context.Background()
	store := opened(ctx)
	defer store.Close()

	acme := tenant.MustParse("acme")
	rep, err := tenants.Erase(ctx, store, acme, tenants.EraseOptions{
		By:     "privacy@example.com",
		Settle: 1, // no other store is open, and no call is running
	})
	fmt.Println(rep.State, rep.Rows, rep.Verified.IsZero(), len(rep.Unreached) > 0, err)
	_, err = notes.For(store, acme).Latest(ctx, tsdb.NewEntity("berlin"))
	fmt.Println(errors.Is(err, tsdb.ErrErased))
	// Output:
	// erased 2 false true <nil>
	// true
}

func ExampleCounted() {
	ctx := context.Background()
	store := opened(ctx)
	defer store.Close()

	rep, err := tenants.EraseEntity(ctx, store, tenant.MustParse("acme"), "", map[string]string{"site": "paris"},
		tenants.EraseOptions{Settle: 1})
	fmt.Println(err)
	for _, k := range rep.Kinds {
		fmt.Println(k.Dataset, k.Rows)
	}
	// Output:
	// <nil>
	// notes 1
}

func ExampleState() {
	ctx := context.Background()
	store := opened(ctx)
	defer store.Close()

	acme := tenant.MustParse("acme")
	if _, err := tenants.Erase(ctx, store, acme, tenants.EraseOptions{Settle: 1}); err != nil {
		log.Fatal(err)
	}
	if err := tenants.Readmit(ctx, store, acme); err != nil {
		log.Fatal(err)
	}
	rep, err := tenants.Erasure(ctx, store, acme)
	fmt.Println(rep.State, err)
	// Output: readmitted <nil>
}

func ExampleEraseOptions() {
	ctx := context.Background()
	store := opened(ctx)
	defer store.Close()

	rep, err := tenants.Erase(ctx, store, tenant.MustParse("acme"), tenants.EraseOptions{DryRun: true})
	fmt.Println("would delete", rep.Rows, err)
	// Output: would delete 2 <nil>
}

func ExampleProgress() {
	ctx := context.Background()
	store := opened(ctx)
	defer store.Close()

	_, err := tenants.Erase(ctx, store, tenant.MustParse("acme"), tenants.EraseOptions{
		Settle: 1,
		Progress: func(p tenants.Progress) {
			if p.State == tenants.Deleting || p.State == tenants.Erased {
				fmt.Println(p.State, p.Deleted, "of", p.Counted)
			}
		},
	})
	fmt.Println(err)
	// Output:
	// deleting 0 of 2
	// deleting 2 of 2
	// erased 2 of 2
	// <nil>
}
