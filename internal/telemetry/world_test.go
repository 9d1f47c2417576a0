package telemetry_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/rollup"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

var (
	acme = tenant.MustParse("acme")
	roof = tsdb.NewEntity("berlin", "roof-7")

	hour = rollup.MustDefine("hour", window.Every(time.Hour), []rollup.Measure[float64]{
		{Name: "value", Of: func(v float64) (float64, bool) { return v, true }, Decimals: 2, Max: 1000},
	}, rollup.Options{})
	once = rollup.MustDefine("once", window.Every(time.Hour), []rollup.Measure[float64]{
		{Name: "value", Of: func(v float64) (float64, bool) { return v, true }, Decimals: 2, Max: 1000},
	}, rollup.Options{Mode: rollup.Once})
	schema = tsdb.MustDefine("readings", tsdb.Key("site", "device"), codec.JSON[float64](), tsdb.SchemaOptions{
		Retention: gc.Class{Name: "d90", Policy: gc.MaxAge(90 * 24 * time.Hour)},
		Rollups:   []tsdb.Rollup{hour, once},
	})
)

// world is a store with telemetry.
type world struct {
	testing.TB
	store *tsdb.Store
	conn  *tsdbtest.Conn
	repo  *tsdb.Repository[float64]
	base  time.Time

	watch   tsdb.Telemetry
	spans   *tracetest.InMemoryExporter
	created *starts
	reader  *metric.ManualReader
	metrics map[string]metricdata.Metrics // collected since forget; nil if nothing was collected
}

// starts holds the attributes of spans at their creation, when a sampler decides.
type starts struct {
	mu    sync.Mutex
	spans []trace.ReadWriteSpan
	attrs [][]attribute.KeyValue
}

func (s *starts) OnStart(_ context.Context, span trace.ReadWriteSpan) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.spans, s.attrs = append(s.spans, span), append(s.attrs, span.Attributes())
}
func (*starts) OnEnd(trace.ReadOnlySpan)         {}
func (*starts) Shutdown(context.Context) error   { return nil }
func (*starts) ForceFlush(context.Context) error { return nil }

func newWorld(t testing.TB, watch tsdb.Telemetry, opts tsdbtest.Options) *world {
	t.Helper()
	w := &world{TB: t, spans: tracetest.NewInMemoryExporter(), created: &starts{}, reader: metric.NewManualReader(metric.WithTemporalitySelector(metric.DeltaTemporalitySelector)), base: time.Now().Truncate(time.Hour).Add(-48 * time.Hour)}
	if watch.TracerProvider == nil {
		p := trace.NewTracerProvider(trace.WithSyncer(w.spans), trace.WithSpanProcessor(w.created))
		t.Cleanup(func() { _ = p.Shutdown(context.Background()) })
		watch.TracerProvider = p
	}
	if watch.MeterProvider == nil {
		p := metric.NewMeterProvider(metric.WithReader(w.reader))
		t.Cleanup(func() { _ = p.Shutdown(context.Background()) })
		watch.MeterProvider = p
	}
	if watch.Namespace == "" {
		watch.Namespace = "project|instance"
	}
	w.watch, opts.Telemetry = watch, watch
	w.store, w.conn = tsdbtest.Open(t, opts, schema)
	w.repo = schema.For(w.store, acme)
	points := make([]tsdb.Point[float64], 10)
	for i := range points {
		points[i] = tsdb.Point[float64]{Entity: roof, Time: w.base.Add(time.Duration(i) * time.Minute), Value: float64(i)}
	}
	if _, err := w.repo.PutMany(t.Context(), points); err != nil {
		t.Fatal(err)
	}
	w.forget()
	return w
}

// forget drops the spans and metrics so far.
func (w *world) forget() {
	w.metrics = nil
	_ = w.instruments()
	w.metrics = nil
	w.spans.Reset()
	w.created.mu.Lock()
	w.created.spans, w.created.attrs = nil, nil
	w.created.mu.Unlock()
}

// span returns the only ended span with a name.
func (w *world) span(name string) tracetest.SpanStub {
	w.Helper()
	var found []tracetest.SpanStub
	for _, s := range w.spans.GetSpans() {
		if s.Name == name {
			found = append(found, s)
		}
	}
	if len(found) != 1 {
		w.Fatalf("got %d spans %q among %v, want 1", len(found), name, spanNames(w.spans.GetSpans()))
	}
	return found[0]
}

// atCreation returns the attributes that a span had at its creation.
func (w *world) atCreation(name string) map[string]string {
	w.created.mu.Lock()
	defer w.created.mu.Unlock()
	for i, s := range w.created.spans {
		if s.Name() == name {
			return plain(w.created.attrs[i])
		}
	}
	return nil
}

func spanNames(spans tracetest.SpanStubs) (names []string) {
	for _, s := range spans {
		names = append(names, s.Name)
	}
	return names
}

// plain returns attributes as text.
func plain(attrs []attribute.KeyValue) map[string]string {
	m := map[string]string{}
	for _, a := range attrs {
		m[string(a.Key)] = a.Value.String()
	}
	return m
}

// instruments returns all metrics by name, as of its first call since forget.
func (w *world) instruments() map[string]metricdata.Metrics {
	w.Helper()
	if w.metrics != nil {
		return w.metrics
	}
	var all metricdata.ResourceMetrics
	if err := w.reader.Collect(context.Background(), &all); err != nil && !errors.Is(err, metric.ErrReaderNotRegistered) {
		w.Fatal(err)
	}
	m := map[string]metricdata.Metrics{}
	for _, s := range all.ScopeMetrics {
		if s.Scope.Name != "github.com/tidemark-go/tidemark" {
			continue
		}
		for _, one := range s.Metrics {
			m[one.Name] = one
		}
	}
	w.metrics = m
	return m
}

// point is a data point of any kind of metric.
type point struct {
	attrs  map[string]string
	count  uint64 // of a histogram
	sum    float64
	bounds []float64
}

// points returns a metric's data points that have all of the attributes, given as "key=value".
func (w *world) points(name string, with ...string) (found []point) {
	w.Helper()
	var all []point
	switch data := w.instruments()[name].Data.(type) {
	case nil:
	case metricdata.Histogram[float64]:
		for _, p := range data.DataPoints {
			all = append(all, point{plain(p.Attributes.ToSlice()), p.Count, p.Sum, p.Bounds})
		}
	case metricdata.Histogram[int64]:
		for _, p := range data.DataPoints {
			all = append(all, point{plain(p.Attributes.ToSlice()), p.Count, float64(p.Sum), p.Bounds})
		}
	case metricdata.Sum[int64]:
		for _, p := range data.DataPoints {
			all = append(all, point{attrs: plain(p.Attributes.ToSlice()), sum: float64(p.Value)})
		}
	case metricdata.Sum[float64]:
		for _, p := range data.DataPoints {
			all = append(all, point{attrs: plain(p.Attributes.ToSlice()), sum: p.Value})
		}
	case metricdata.Gauge[float64]:
		for _, p := range data.DataPoints {
			all = append(all, point{attrs: plain(p.Attributes.ToSlice()), sum: p.Value})
		}
	default:
		w.Fatalf("%s has the unknown type %T", name, data)
	}
	for _, p := range all {
		if !slices.ContainsFunc(with, func(kv string) bool {
			key, value, _ := strings.Cut(kv, "=")
			have, ok := p.attrs[key]
			return !ok || have != value
		}) {
			found = append(found, p)
		}
	}
	return found
}

// counted returns the total count of a histogram's data points with the attributes.
func (w *world) counted(name string, with ...string) (n uint64) {
	w.Helper()
	for _, p := range w.points(name, with...) {
		n += p.count
	}
	return n
}

// kindOf returns the kind of a metric.
func kindOf(data metricdata.Aggregation) string {
	kind := strings.TrimPrefix(fmt.Sprintf("%T", data), "metricdata.")
	sum := func(monotonic bool) string {
		if monotonic {
			return "counter"
		}
		return "level"
	}
	switch d := data.(type) {
	case metricdata.Sum[int64]:
		return sum(d.IsMonotonic)
	case metricdata.Sum[float64]:
		return sum(d.IsMonotonic)
	}
	return kind
}

// boundsOf returns the boundaries of a histogram's buckets.
func boundsOf(data metricdata.Aggregation) []float64 {
	switch d := data.(type) {
	case metricdata.Histogram[int64]:
		return d.DataPoints[0].Bounds
	case metricdata.Histogram[float64]:
		return d.DataPoints[0].Bounds
	}
	return nil
}

// forgetNothing makes the next call collect metrics again, with sums since the start.
func (w *world) forgetNothing() { w.metrics = nil }
