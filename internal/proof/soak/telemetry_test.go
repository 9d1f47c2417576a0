package soak

import (
	"context"
	"log/slog"

	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/trace"

	"github.com/tidemark-go/tidemark/tsdb"
)

// telemetry turns on all telemetry of the store.
func (w *world) telemetry() tsdb.Telemetry {
	w.metrics = metric.NewManualReader()
	meters := metric.NewMeterProvider(metric.WithReader(w.metrics), metric.WithCardinalityLimit(0)) // no limit: the provider's own would hide the store's
	spans := trace.NewTracerProvider(trace.WithSampler(trace.TraceIDRatioBased(0.1)), trace.WithBatcher(nowhere{}))
	w.t.Cleanup(func() {
		_ = meters.Shutdown(context.Background())
		_ = spans.Shutdown(context.Background())
	})
	return tsdb.Telemetry{MeterProvider: meters, TracerProvider: spans, Logger: slog.New(slog.DiscardHandler), IncludeErrorText: true, Tenants: 50}
}

// nowhere discards spans.
type nowhere struct{}

func (nowhere) ExportSpans(context.Context, []trace.ReadOnlySpan) error { return nil }
func (nowhere) Shutdown(context.Context) error                          { return nil }

// collectMetrics collects metrics at intervals, as an exporter does. The attributes of series are bounded: 50 tenants,
// three datasets, and a few types of errors.
func (w *world) collectMetrics() {
	var all metricdata.ResourceMetrics
	if err := w.metrics.Collect(context.Background(), &all); err != nil {
		w.fail("metrics: %v", err)
		return
	}
	series := 0
	for _, s := range all.ScopeMetrics {
		for _, m := range s.Metrics {
			if d, ok := m.Data.(metricdata.Histogram[float64]); ok {
				series = max(series, len(d.DataPoints))
			}
		}
	}
	if series == 0 || series > mostSeries {
		w.fail("metrics: got %d series of one histogram, want 1 to %d", series, mostSeries)
	}
}

// mostSeries is 51 tenants and none, 3 datasets and none, some 30 operations and some 5 error types, few of which occur
// together.
const mostSeries = 10_000
