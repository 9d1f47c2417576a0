package telemetry

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"
	tracenoop "go.opentelemetry.io/otel/trace/noop"

	"github.com/tidemark-go/tidemark/internal/version"
)

// Config identifies a store and says where to report.
type Config struct {
	TracerProvider trace.TracerProvider // nil means the global one
	MeterProvider  metric.MeterProvider // nil means the global one
	Logger         *slog.Logger         // nil means no logging
	Details        bool                 // logs and spans contain tenants and error texts, which may contain keys
	Tenants        int                  // number of tenants with their own attribute; 0 means no such attribute
	Ended          func(context.Context, Ended)
	Attempted      func(context.Context, Attempted)

	Namespace, Table string
	Cache            func() CacheFigures // nil if the store has no cache
	// Kind returns the type of an error that the service did not return, or "". Absent reports whether an error only
	// means that nothing was found, Unreadable whether it concerns stored data, and so is not a refusal of the SDK.
	// First returns the first of several failures.
	Kind       func(error) string
	Absent     func(error) bool
	Unreadable func(error) bool
	First      func(error) error
}

// Ended is a finished operation.
type Ended struct {
	Name     Name
	Subject  Subject
	Start    time.Time
	Duration time.Duration
	Rows     int // number of rows returned
	Requests int // number of requests to the data API
	Err      error
	Type     string // error.type of Err; empty if the operation succeeded
}

// Attempted is a finished request.
type Attempted struct {
	Operation Name
	Method    string // such as google.bigtable.v2.Bigtable/MutateRows
	Start     time.Time
	Duration  time.Duration
	Err       error
}

// Subject is the object of an operation.
type Subject struct {
	Tenant, Dataset string // empty if there is none, or more than one
	Batch           int    // number of writes; 0 if the operation is not a batch
	Batched         bool   // the operation is a batch if it has more than one write
}

// unset is the global trace provider before the program sets one; nil if the program set one before this package was
// initialized.
var unset = func() trace.TracerProvider {
	p := otel.GetTracerProvider()
	if _, span := p.Tracer(Scope).Start(context.Background(), "unset"); span.SpanContext().IsValid() {
		return nil
	}
	return p
}()

// Probe reports on one store. It is safe for concurrent use.
type Probe struct {
	conf    Config
	base    []attribute.KeyValue // attributes of all metrics and spans
	tracer  trace.Tracer         // nil if spans would be discarded
	waiting bool                 // the tracer does nothing until the program sets a global provider
	logs    *faults              // nil if nothing is logged

	duration metric.Float64Histogram
	rows     metric.Int64Histogram
	attempts metric.Float64Histogram

	known    atomic.Pointer[map[subject]*family]
	tenants  atomic.Pointer[map[string]*tally]
	reasons  atomic.Pointer[map[string][]metric.RecordOption]
	mu       sync.Mutex   // held to change the three maps
	others   tally        // of the tenants without their own attribute
	accepted atomic.Int64 // number of points that writers accepted

	batchSize metric.Int64Histogram
	queueWait metric.Float64Histogram
	writers   writers
	rollups   lags
	observed  metric.Registration // nil if nothing is registered
}

// Open returns a probe. If a provider refuses an instrument, Open reports that to OpenTelemetry's error handler, and
// the instrument measures nothing.
func Open(c Config) *Probe {
	p := &Probe{conf: c, base: []attribute.KeyValue{attribute.String(attrSystem, System)}}
	if c.Namespace != "" {
		p.base = append(p.base, attribute.String(attrNamespace, c.Namespace))
	}
	p.base = append(p.base, attribute.String(attrTable, c.Table))
	p.known.Store(&map[subject]*family{})
	p.tenants.Store(&map[string]*tally{})
	p.reasons.Store(&map[string][]metric.RecordOption{})
	if c.Logger != nil {
		p.logs = newFaults(c.Logger, c.Table)
	}
	traces := c.TracerProvider
	if traces == nil {
		traces = otel.GetTracerProvider()
		p.waiting = unset != nil && traces == unset
	}
	if _, silent := traces.(tracenoop.TracerProvider); !silent {
		p.tracer = traces.Tracer(Scope, trace.WithInstrumentationVersion(version.Version), trace.WithSchemaURL(SchemaURL))
	}
	meters := c.MeterProvider
	if meters == nil {
		meters = otel.GetMeterProvider()
	}
	m := maker{meters.Meter(Scope, metric.WithInstrumentationVersion(version.Version), metric.WithSchemaURL(SchemaURL))}
	p.duration = m.seconds("db.client.operation.duration", "Duration of database client operations.")
	p.attempts = m.seconds("tidemark.attempt.duration", "Duration of single requests to Bigtable's data API, retries included.")
	p.rows = m.counts("db.client.response.returned_rows", "{row}", "The actual number of records returned by the database operation.")
	p.batchSize = m.counts("tidemark.writer.batch.size", "{point}", "Points in each request of a writer.")
	p.queueWait = m.seconds("tidemark.writer.queue.wait", "How long the oldest point of each request of a writer had waited.")
	p.observe(m)
	return p
}

// Close unregisters the probe's callbacks, and logs the faults that were only counted so far.
func (p *Probe) Close() {
	if p == nil {
		return
	}
	if p.observed != nil {
		_ = p.observed.Unregister()
	}
	p.logs.close()
}
