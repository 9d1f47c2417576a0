package tsdb_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"time"

	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/embedded"
)

// Stores use the global OpenTelemetry providers, so most programs need no options. This program has its own providers,
// records the tenant on metrics, and logs faults.
func ExampleTelemetry() {
	ctx := context.Background()
	reader := metric.NewManualReader() // a real program has an exporter here
	provider := metric.NewMeterProvider(metric.WithReader(reader))
	defer provider.Shutdown(ctx) //nolint:errcheck // the program ends

	store, err := embedded.New(ctx, embedded.Options{
		StoreOptions: tsdb.StoreOptions{Telemetry: tsdb.Telemetry{
			MeterProvider: provider,
			Tenants:       100,
			Logger:        slog.New(slog.NewTextHandler(os.Stderr, nil)),
		}},
	})
	if err != nil {
		panic(err)
	}
	defer store.Close() //nolint:errcheck // the program ends
	temperatures := tsdb.MustDefine("temperatures", tsdb.Key("device"), codec.JSON[float64](), tsdb.SchemaOptions{})
	if err := store.Ensure(ctx, temperatures); err != nil {
		panic(err)
	}
	repo := temperatures.For(store, tenant.MustParse("acme"))
	_, err = repo.Latest(ctx, tsdb.NewEntity("roof-7")) // there is none; a missing point is a result, not a failure
	fmt.Println(err)

	var collected metricdata.ResourceMetrics
	if err := reader.Collect(ctx, &collected); err != nil {
		panic(err)
	}
	for _, m := range collected.ScopeMetrics[0].Metrics {
		durations, ok := m.Data.(metricdata.Histogram[float64])
		if !ok || m.Name != "db.client.operation.duration" {
			continue
		}
		for _, p := range durations.DataPoints {
			operation, _ := p.Attributes.Value("db.operation.name")
			of, named := p.Attributes.Value("tidemark.tenant")
			_, failed := p.Attributes.Value("error.type")
			if named {
				fmt.Println(operation.AsString(), "of", of.AsString(), "calls:", p.Count, "failed:", failed)
			}
		}
	}
	// Output:
	// tsdb: not found
	// Latest of acme calls: 1 failed: false
}

// counters are a program's own metrics.
type counters struct{ calls, failed, requests int }

// A program with its own metrics counts calls and requests.
func ExampleHooks() {
	ctx := context.Background()
	var c counters
	store, err := embedded.New(ctx, embedded.Options{
		StoreOptions: tsdb.StoreOptions{Telemetry: tsdb.Telemetry{Hooks: tsdb.Hooks{
			Operation: func(_ context.Context, o tsdb.Operation) {
				if o.Name == "Put" {
					c.calls++
					if o.Err != nil {
						c.failed++
						fmt.Println(o.Name, "in", o.Dataset, "failed:", o.ErrorType)
					}
				}
			},
			Attempt: func(_ context.Context, a tsdb.Attempt) {
				if a.Operation == "Put" {
					c.requests++
				}
			},
		}}},
	})
	if err != nil {
		panic(err)
	}
	defer store.Close() //nolint:errcheck // the program ends
	temperatures := tsdb.MustDefine("temperatures", tsdb.Key("device"), codec.JSON[float64](), tsdb.SchemaOptions{})
	if err := store.Ensure(ctx, temperatures); err != nil {
		panic(err)
	}
	repo := temperatures.For(store, tenant.MustParse("acme"))
	_ = repo.Put(ctx, tsdb.NewEntity("roof-7"), time.Now(), 21.5)
	_ = repo.Put(ctx, tsdb.NewEntity("roof-7", "one part too many"), time.Now(), 21.5) // one key field too many: nothing is sent
	fmt.Printf("%+v\n", c)
	// Output:
	// Put in temperatures failed: tsdb.ErrInvalid
	// {calls:2 failed:1 requests:1}
}

// The hook Operation gets each call after it has ended: its name, its cost and its error.
func ExampleOperation() {
	o := tsdb.Operation{Name: "Latest", Dataset: "temperatures", Rows: 1, Attempts: 2}
	fmt.Printf("%s of %s: %d row, %d requests\n", o.Name, o.Dataset, o.Rows, o.Attempts)
	// Output: Latest of temperatures: 1 row, 2 requests
}

// The hook Attempt gets each request, including retries.
func ExampleAttempt() {
	a := tsdb.Attempt{Operation: "Latest", Method: "google.bigtable.v2.Bigtable/ReadRows"}
	fmt.Println(a.Operation, a.Method)
	// Output: Latest google.bigtable.v2.Bigtable/ReadRows
}
