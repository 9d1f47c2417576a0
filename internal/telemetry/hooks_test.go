package telemetry_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"go.opentelemetry.io/otel"
	metricnoop "go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	tracenoop "go.opentelemetry.io/otel/trace/noop"
	grpccodes "google.golang.org/grpc/codes"

	"github.com/tidemark-go/tidemark/internal/telemetry"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// TestHooks checks that hooks get the data of spans and metrics, without either of them.
func TestHooks(t *testing.T) {
	var mu sync.Mutex
	var operations []tsdb.Operation
	var attempts []tsdb.Attempt
	watch := tsdb.Telemetry{
		TracerProvider: tracenoop.NewTracerProvider(), MeterProvider: metricnoop.NewMeterProvider(),
		Hooks: tsdb.Hooks{
			Operation: func(ctx context.Context, o tsdb.Operation) {
				mu.Lock()
				defer mu.Unlock()
				if o.Name != "Upkeep" {
					operations = append(operations, o)
				}
			},
			Attempt: func(ctx context.Context, a tsdb.Attempt) {
				mu.Lock()
				defer mu.Unlock()
				if a.Operation != "Upkeep" {
					attempts = append(attempts, a)
				}
			},
		},
	}
	w := newWorld(t, watch, tsdbtest.Options{})
	operations, attempts = nil, nil
	w.conn.Inject(tsdbtest.Fail(grpccodes.Unavailable).Times(1))
	if _, err := w.repo.LatestN(t.Context(), roof, 3); err != nil {
		t.Fatal(err)
	}
	_, err := w.repo.Latest(t.Context(), nobody)
	if !errors.Is(err, tsdb.ErrNotFound) {
		t.Fatal(err)
	}
	bad := w.repo.Put(t.Context(), tsdb.NewEntity("one"), w.base, 1)
	if _, err := w.repo.PutMany(t.Context(), []tsdb.Point[float64]{{Entity: roof, Time: w.base}, {Entity: nobody, Time: w.base}}); err != nil {
		t.Fatal(err)
	}
	want := []tsdb.Operation{
		{Name: "LatestN", Rows: 3, Attempts: 2},
		{Name: "Latest", Attempts: 1},
		{Name: "Put", Err: bad, ErrorType: "tsdb.ErrInvalid"},
		{Name: "Put", Batch: 2, Attempts: 1},
	}
	if len(operations) != len(want) {
		t.Fatalf("got operations %+v", operations)
	}
	for i, o := range operations {
		e := want[i]
		if o.Name != e.Name || o.Rows != e.Rows || o.Attempts != e.Attempts || o.Batch != e.Batch || o.ErrorType != e.ErrorType || (o.Err == nil) != (e.Err == nil) ||
			o.Tenant != "acme" || o.Dataset != "readings" || o.Start.IsZero() || o.Duration <= 0 {
			t.Errorf("got operation %+v, want %+v", o, e)
		}
	}
	if len(attempts) != 4 || attempts[0].Err == nil || attempts[1].Err != nil || attempts[1].Method != "google.bigtable.v2.Bigtable/ReadRows" || attempts[1].Operation != "LatestN" {
		t.Errorf("got attempts %+v", attempts)
	}
}

// TestWithoutTelemetry checks that, without a provider, a hook or a logger, an operation is nil and allocates nothing.
func TestWithoutTelemetry(t *testing.T) {
	for name, c := range map[string]telemetry.Config{
		"global providers that are not set": {Table: "t"},
		"providers that do nothing":         {Table: "t", TracerProvider: tracenoop.NewTracerProvider(), MeterProvider: metricnoop.NewMeterProvider()},
		"metrics without a reader":          {Table: "t", TracerProvider: tracenoop.NewTracerProvider(), MeterProvider: metric.NewMeterProvider()},
		"tenants without any telemetry":     {Table: "t", Tenants: 10},
	} {
		if setLater && c.TracerProvider == nil {
			continue // an earlier run has set them
		}
		p := telemetry.Open(c)
		ctx := t.Context()
		allocs := testing.AllocsPerRun(100, func() {
			within, op := p.Begin(ctx, telemetry.Latest, telemetry.Subject{Tenant: "acme", Dataset: "readings"})
			if within != ctx || op != nil {
				t.Fatalf("%s: got operation %v, want nil", name, op)
			}
			telemetry.From(within).Attempt("/google.bigtable.v2.Bigtable/ReadRows").End(nil)
			op.Returned(1)
			op.Unstored(1)
			op.End(nil)
		})
		if allocs > 0 {
			t.Errorf("%s: got %v allocations, want 0", name, allocs)
		}
		p.Close()
	}
}

// setLater is true once the global providers are set, which is possible once per process.
var setLater bool

// TestProvidersThatAreSetLater checks that a store reports to global providers that the program sets after it has
// opened the store.
func TestProvidersThatAreSetLater(t *testing.T) {
	if setLater {
		t.Skip("the global providers are set already")
	}
	setLater = true
	store, _ := tsdbtest.Open(t, tsdbtest.Options{}, schema)
	spans, reader := tracetest.NewInMemoryExporter(), metric.NewManualReader()
	otel.SetTracerProvider(trace.NewTracerProvider(trace.WithSyncer(spans)))
	otel.SetMeterProvider(metric.NewMeterProvider(metric.WithReader(reader)))
	w := &world{TB: t, spans: spans, reader: reader}
	if err := store.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
	if attrs := plain(w.span("Ping tidemark").Attributes); attrs["db.namespace"] != "" || attrs["db.system.name"] != "gcp.bigtable" {
		t.Errorf("got attributes %v", attrs)
	}
	if n := w.counted("db.client.operation.duration", "db.operation.name=Ping"); n != 1 {
		t.Errorf("got %d operations, want 1", n)
	}
	after, _ := tsdbtest.Open(t, tsdbtest.Options{}, schema) // as most programs do
	spans.Reset()
	if err := after.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.span("Ping tidemark")
}
