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

// TestHooks are told what spans and metrics are, without either.
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
		t.Fatalf("%+v", operations)
	}
	for i, o := range operations {
		e := want[i]
		if o.Name != e.Name || o.Rows != e.Rows || o.Attempts != e.Attempts || o.Batch != e.Batch || o.ErrorType != e.ErrorType || (o.Err == nil) != (e.Err == nil) ||
			o.Tenant != "acme" || o.Dataset != "readings" || o.Start.IsZero() || o.Duration <= 0 {
			t.Errorf("%+v, want %+v", o, e)
		}
	}
	if len(attempts) != 4 || attempts[0].Err == nil || attempts[1].Err != nil || attempts[1].Method != "google.bigtable.v2.Bigtable/ReadRows" || attempts[1].Operation != "LatestN" {
		t.Errorf("%+v", attempts)
	}
}

// TestNobodyWatches: without a provider, a hook or a logger an operation is none, and costs no memory.
func TestNobodyWatches(t *testing.T) {
	for name, c := range map[string]telemetry.Config{
		"global providers that are not set": {Table: "t"},
		"providers that do nothing":         {Table: "t", TracerProvider: tracenoop.NewTracerProvider(), MeterProvider: metricnoop.NewMeterProvider()},
		"metrics without a reader":          {Table: "t", TracerProvider: tracenoop.NewTracerProvider(), MeterProvider: metric.NewMeterProvider()},
		"tenants that nobody sees":          {Table: "t", Tenants: 10},
	} {
		if setLater && c.TracerProvider == nil {
			continue // an earlier round has set them
		}
		p := telemetry.Open(c)
		ctx := t.Context()
		allocs := testing.AllocsPerRun(100, func() {
			within, op := p.Begin(ctx, telemetry.Latest, telemetry.Subject{Tenant: "acme", Dataset: "readings"})
			if within != ctx || op != nil {
				t.Fatalf("%s: %v", name, op)
			}
			telemetry.From(within).Attempt("/google.bigtable.v2.Bigtable/ReadRows").End(nil)
			op.Returned(1)
			op.Unstored(1)
			op.End(nil)
		})
		if allocs > 0 {
			t.Errorf("%s: %v allocations", name, allocs)
		}
		p.Close()
	}
}

// setLater says that the global providers are set, which can be done once.
var setLater bool

// TestProvidersThatAreSetLater: a store that was opened before the program sets OpenTelemetry up tells it all the same.
func TestProvidersThatAreSetLater(t *testing.T) {
	if setLater {
		t.Skip("they are set")
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
		t.Errorf("%v", attrs)
	}
	if n := w.counted("db.client.operation.duration", "db.operation.name=Ping"); n != 1 {
		t.Errorf("%d", n)
	}
	after, _ := tsdbtest.Open(t, tsdbtest.Options{}, schema) // as most programs do it
	spans.Reset()
	if err := after.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.span("Ping tidemark")
}
