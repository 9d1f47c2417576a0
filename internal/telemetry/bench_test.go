package telemetry_test

import (
	"context"
	"testing"

	"go.opentelemetry.io/otel/sdk/metric"

	"github.com/tidemark-go/tidemark/internal/telemetry"
)

// BenchmarkOperation measures what telemetry adds to an operation with one request: with no telemetry, and with
// metrics.
func BenchmarkOperation(b *testing.B) {
	for name, c := range map[string]telemetry.Config{
		"off":     {Table: "t"},
		"metrics": {Table: "t", MeterProvider: metric.NewMeterProvider(metric.WithReader(metric.NewManualReader()))},
	} {
		b.Run(name, func(b *testing.B) {
			p := telemetry.Open(c)
			defer p.Close()
			ctx := context.Background()
			b.ReportAllocs()
			for b.Loop() {
				ctx, op := p.Begin(ctx, telemetry.Latest, telemetry.Subject{Tenant: "acme", Dataset: "readings"})
				a := telemetry.From(ctx).Attempt("/google.bigtable.v2.Bigtable/ReadRows")
				a.End(nil)
				op.Returned(1)
				op.End(nil)
			}
		})
	}
}
