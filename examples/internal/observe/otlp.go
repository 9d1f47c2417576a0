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

// send returns the provider of traces, and what sends metrics periodically. Neither waits for the collector: traces are
// queued up to a bound, and dropped beyond it. Headers, certificates, times and sampling come from the environment.
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

// sender sends spans until it is stopped. The provider's own shutdown leaves a request running when its time is over,
// so it gets unlimited time, and its requests are cancelled instead.
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
