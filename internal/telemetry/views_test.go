package telemetry_test

import (
	"testing"

	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// TestEachHistogramStandsAlone: a program that drops the others by views still gets the one that it has kept.
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
				t.Errorf("with %s alone %s has %d", kept, name, n)
			}
		}
		if got := w.points(all[1], "db.operation.name=Range"); kept == all[1] && (len(got) != 1 || got[0].sum != 10) {
			t.Errorf("rows: %+v", got)
		}
	}
}
