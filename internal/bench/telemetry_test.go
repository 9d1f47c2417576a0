package bench

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/trace"

	"github.com/tidemark-go/tidemark/internal/engine"
	"github.com/tidemark-go/tidemark/internal/local"
	"github.com/tidemark-go/tidemark/tsdb"
)

// BenchmarkTelemetry measures the cost of telemetry: none, metrics only, and everything with each span recorded.
func BenchmarkTelemetry(b *testing.B) {
	for _, does := range []struct {
		name string
		do   func(*testing.B, *tsdb.Repository[reading], *tsdb.Store)
	}{{"put", putEach}, {"latest", latestEach}, {"writer", throughWriter}} {
		b.Run(does.name, func(b *testing.B) {
			for _, watched := range []struct {
				name string
				by   func(*testing.B) tsdb.Telemetry
			}{
				{"off", func(*testing.B) tsdb.Telemetry { return tsdb.Telemetry{} }},
				{"metrics", meters},
				{"all", everything},
			} {
				b.Run(watched.name, func(b *testing.B) {
					store := watchedStore(b, watched.by(b))
					does.do(b, readings.For(store, acme), store)
				})
			}
		})
	}
}

func meters(b *testing.B) tsdb.Telemetry {
	p := metric.NewMeterProvider(metric.WithReader(metric.NewManualReader()))
	b.Cleanup(func() { _ = p.Shutdown(context.Background()) })
	return tsdb.Telemetry{MeterProvider: p}
}

func everything(b *testing.B) tsdb.Telemetry {
	t := meters(b)
	p := trace.NewTracerProvider(trace.WithBatcher(nowhere{}))
	b.Cleanup(func() { _ = p.Shutdown(context.Background()) })
	t.TracerProvider, t.Logger, t.IncludeErrorText, t.Tenants = p, slog.New(slog.DiscardHandler), true, 100
	t.Hooks = tsdb.Hooks{Operation: func(context.Context, tsdb.Operation) {}, Attempt: func(context.Context, tsdb.Attempt) {}}
	return t
}

// nowhere discards spans.
type nowhere struct{}

func (nowhere) ExportSpans(context.Context, []trace.ReadOnlySpan) error { return nil }
func (nowhere) Shutdown(context.Context) error                          { return nil }

func watchedStore(b *testing.B, t tsdb.Telemetry) *tsdb.Store {
	b.Helper()
	server, err := local.Open(engine.Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = server.Close() })
	store := open(b, server, func(c *bigtable.Client, a *bigtable.AdminClient) *tsdb.Store {
		s, err := tsdb.New(c, table, tsdb.Options{StoreOptions: tsdb.StoreOptions{Telemetry: t}, Admin: a})
		if err != nil {
			b.Fatal(err)
		}
		return s
	})
	b.Cleanup(func() { _ = store.Close() })
	if err := store.Ensure(context.Background(), readings); err != nil {
		b.Fatal(err)
	}
	return store
}

func putEach(b *testing.B, repo *tsdb.Repository[reading], _ *tsdb.Store) {
	ctx, base, n := context.Background(), time.Now(), 0
	b.ReportAllocs()
	for b.Loop() {
		if err := repo.Put(ctx, roof, base.Add(time.Duration(n)*time.Microsecond), reading{21.5, 40}); err != nil {
			b.Fatal(err)
		}
		n++
	}
}

func latestEach(b *testing.B, repo *tsdb.Repository[reading], _ *tsdb.Store) {
	ctx := context.Background()
	fill(b, repo, 1000)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := repo.Latest(ctx, roof); err != nil {
			b.Fatal(err)
		}
	}
}
