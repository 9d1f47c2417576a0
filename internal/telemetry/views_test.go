package telemetry_test

import (
	"errors"
	"maps"
	"slices"
	"testing"
	"time"

	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// TestEachHistogramStandsAlone checks that a program that drops all other histograms by views still gets the remaining
// one.
func TestEachHistogramStandsAlone(t *testing.T) {
	of := map[string]string{
		"db.client.operation.duration": "db.operation.name=Range", "db.client.response.returned_rows": "db.operation.name=Range",
		"tidemark.attempt.duration": "db.operation.name=Range", "tidemark.writer.batch.size": "tidemark.flush.reason=flush",
		"tidemark.writer.queue.wait": "tidemark.flush.reason=flush",
	}
	all := slices.Sorted(maps.Keys(of))
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
		writer, err := w.store.NewWriter(tsdb.WriterOptions{Linger: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(w.repo.Via(writer).Enqueue(t.Context(), roof, w.base, 1), writer.Flush(t.Context()), writer.Close(t.Context())); err != nil {
			t.Fatal(err)
		}
		for _, name := range all {
			if n := w.counted(name, of[name]); n != map[bool]uint64{true: 1}[name == kept] {
				t.Errorf("with %s only: got %[3]d points in %[2]s", kept, name, n)
			}
		}
		const rows = "db.client.response.returned_rows"
		if got := w.points(rows, of[rows]); kept == rows && (len(got) != 1 || got[0].sum != 10) {
			t.Errorf("got row metrics %+v", got)
		}
	}
}
