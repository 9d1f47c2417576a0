package observe

import (
	"context"
	"fmt"
	"net/url"

	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	"go.opentelemetry.io/otel/sdk/trace"
)

// send makes the provider of traces, and returns what sends metrics now and then. Neither waits for the collector: traces are
// queued, up to a bound, behind which they are dropped. Headers, certificates, times and sampling are the environment's.
func (out *Outlet) send(ctx context.Context, endpoint string, what *resource.Resource) (metric.Reader, error) {
	at := func(signal string) string {
		whole, _ := url.JoinPath(endpoint, "v1", signal) // it has been parsed before
		return whole
	}
	spans, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(at("traces")))
	if err != nil {
		return nil, fmt.Errorf("-otlp-endpoint: %w", err)
	}
	until, giveUp := context.WithCancel(context.WithoutCancel(ctx))
	out.giveUp = giveUp
	out.spans = trace.NewTracerProvider(trace.WithResource(what), trace.WithBatcher(sender{spans, until}))
	metrics, err := otlpmetrichttp.New(ctx, otlpmetrichttp.WithEndpointURL(at("metrics")))
	if err != nil {
		return nil, fmt.Errorf("-otlp-endpoint: %w", err)
	}
	return metric.NewPeriodicReader(metrics), nil
}

// sender sends spans until it is stopped. The provider's own end leaves a request under way behind when its time is
// over; so it gets as long as it needs, and its requests are ended instead.
type sender struct {
	trace.SpanExporter
	until context.Context
}

// ExportSpans implements trace.SpanExporter.
func (s sender) ExportSpans(ctx context.Context, spans []trace.ReadOnlySpan) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.until, cancel)()
	return s.SpanExporter.ExportSpans(ctx, spans)
}
