package tenants_test

import (
	"context"
	"fmt"
	"log"

	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb/tenants"
)

func ExamplePart() {
	fmt.Println(tenants.Part{Dataset: "weather"})
	fmt.Println(tenants.Part{Dataset: "weather", Class: "d90"})
	fmt.Println(tenants.Part{Class: "d90"})
	// Output:
	// dataset weather
	// retention class d90 of dataset weather
	// the families of retention class d90
}

// A dry run counts the rows of each tenant that would be deleted. The deletion takes the same options without DryRun.
func ExampleRemoval() {
	ctx := context.Background()
	store := opened(ctx)
	defer store.Close()

	plan, err := tenants.Remove(ctx, store, tenants.Part{Dataset: "notes"}, tenants.RemoveOptions{DryRun: true})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Print(plan)
	// Output:
	// Removal of:   dataset notes
	// State:        counted only, nothing was changed
	// Rows:         3
	//   dataset notes, points: 3
	//   tenant acme: 2
	//   tenant globex: 1
	// Unused:       families of d90, keep; remove these classes, too, to drop them
}

// The report is stored with the deletion, and records who asked for it and why.
func ExampleRemoveOptions() {
	opts := tenants.RemoveOptions{By: "ops", Reason: "replaced by weather2", RowsPerSecond: 1000}
	fmt.Println(opts.By, opts.RowsPerSecond)
	// Output:
	// ops 1000
}

func ExampleTenantRows() {
	rows := tenants.TenantRows{Tenant: tenant.MustParse("acme"), Rows: 3}
	fmt.Println(rows.Tenant, rows.Rows)
	// Output:
	// acme 3
}
