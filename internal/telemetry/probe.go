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
)

// Config says what a probe is of, and where it tells what it sees.
type Config struct {
	TracerProvider trace.TracerProvider // nil is the global one
	MeterProvider  metric.MeterProvider // nil is the global one
	Logger         *slog.Logger         // nil logs nothing
	Details        bool                 // logs and spans hold tenants and the texts of errors, in which keys may stand
	Tenants        int                  // how many tenants have an attribute of their own; 0 for no such attribute
	Ended          func(context.Context, Ended)
	Attempted      func(context.Context, Attempted)

	Namespace, Table string
	Cache            func() CacheFigures // nil where the store has none
	// Kind names the type of an error that is no answer of the service; empty where it has none. Absent reports whether an
	// error only says that there is nothing, Unreadable whether it is about what is stored, and so no refusal of the SDK's.
	// First returns of several failures the first.
	Kind       func(error) string
	Absent     func(error) bool
	Unreadable func(error) bool
	First      func(error) error
}

// Ended is an operation that has ended.
type Ended struct {
	Name     Name
	Subject  Subject
	Start    time.Time
	Duration time.Duration
	Rows     int // that it returned
	Requests int // that it made to the data API
	Err      error
	Type     string // of Err, as error.type; empty where the operation did not fail
}

// Attempted is a request that has ended.
type Attempted struct {
	Operation Name
	Method    string // such as google.bigtable.v2.Bigtable/MutateRows
	Start     time.Time
	Duration  time.Duration
	Err       error
}

// Subject is what an operation is about.
type Subject struct {
	Tenant, Dataset string // empty where there is none, or more than one
	Batch           int    // how many writes; 0 for an operation that is no batch
	Batched         bool   // it is a batch, unless it holds one or none
}

// unset is the global provider of traces while the program has set none; nil where one was set before this package.
var unset = func() trace.TracerProvider {
	p := otel.GetTracerProvider()
	if _, span := p.Tracer(Scope).Start(context.Background(), "unset"); span.SpanContext().IsValid() {
		return nil
	}
	return p
}()

// Probe watches one store. It is safe for concurrent use.
type Probe struct {
	conf    Config
	base    []attribute.KeyValue // of everything
	tracer  trace.Tracer         // nil where spans would go nowhere
	waiting bool                 // the tracer does nothing until the program sets a global provider
	logs    *faults              // nil where nothing is logged

	duration metric.Float64Histogram
	rows     metric.Int64Histogram
	attempts metric.Float64Histogram

	known    atomic.Pointer[map[subject]*family]
	tenants  atomic.Pointer[map[string]*tally]
	reasons  atomic.Pointer[map[string][]metric.RecordOption]
	mu       sync.Mutex   // held to change the three
	others   tally        // of tenants beyond those that are known
	accepted atomic.Int64 // points that writers took

	batchSize metric.Int64Histogram
	queueWait metric.Float64Histogram
	writers   writers
	rollups   lags
	observed  metric.Registration // nil where nothing is
}

// Open returns a probe. What a provider refuses is told to OpenTelemetry's error handler, and not measured.
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
		p.tracer = traces.Tracer(Scope, trace.WithSchemaURL(SchemaURL))
	}
	meters := c.MeterProvider
	if meters == nil {
		meters = otel.GetMeterProvider()
	}
	m := maker{meters.Meter(Scope, metric.WithSchemaURL(SchemaURL))}
	p.duration = m.seconds(metricDuration, "Duration of database client operations.")
	p.attempts = m.seconds(metricAttempt, "Duration of single requests to Bigtable's data API, retries included.")
	p.rows = m.counts(metricRows, "{row}", "The actual number of records returned by the database operation.")
	p.batchSize = m.counts(metricBatchSize, "{point}", "Points in each request of a writer.")
	p.queueWait = m.seconds(metricQueueWait, "How long the oldest point of each request of a writer had waited.")
	p.observe(m)
	return p
}

// traces reports whether spans go anywhere.
func (p *Probe) traces() bool {
	return p.tracer != nil && !(p.waiting && otel.GetTracerProvider() == unset)
}

// Close ends what goes on behind the probe, and logs what was only counted so far.
func (p *Probe) Close() {
	if p == nil {
		return
	}
	if p.observed != nil {
		_ = p.observed.Unregister()
	}
	p.logs.close()
}
