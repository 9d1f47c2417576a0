package telemetry_test

import (
	"testing"

	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// TestEachHistogramStandsAlone checks that a program that drops all other histograms by views still gets the remaining
// one.
func TestEachHistogramStandsAlone(t *testing.T) {
	all := []string{"db.client.operation.duration", "db.client.response.returned_rows", "tidemark.attempt.duration"}
	for _, kept := range all {
		reader := metric.NewManualReader()
		opts := []metric.Option{metric.WithReader(reader)}
		for _, name := range all {
			if name != kept {
				opts = append(opts, metric.WithView(metric.NewView(metric.Instrument{Name: name}, metric.Stream{Aggregation: metric.AggregationDrop{}})))
			}
		}
		w := newWorld(t, tsdb.Telemetry{TracerProvider: noop.NewTracerProvider(), MeterProvider: metric.NewMeterProvider(opts...)}, tsdbtest.Options{})
		w.reader = reader
		for p, err := range w.repo.Range(t.Context(), roof, tsdb.AllTime()) {
			if err != nil {
				t.Fatal(p, err)
			}
		}
		for _, name := range all {
			if n := w.counted(name, "db.operation.name=Range"); n != map[bool]uint64{true: 1}[name == kept] {
				t.Errorf("with %s only: got %[3]d points in %[2]s", kept, name, n)
			}
		}
		if got := w.points(all[1], "db.operation.name=Range"); kept == all[1] && (len(got) != 1 || got[0].sum != 10) {
			t.Errorf("got row metrics %+v", got)
		}
	}
}
