package telemetry

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/tidemark-go/tidemark/internal/ctxerr"
)

// Op is a running operation. A nil *Op reports nothing. Its methods are safe for concurrent use; call End once.
type Op struct {
	ctx    context.Context // for the operation's work; does not contain the Op itself
	probe  *Probe
	series *series
	began  time.Duration // by the monotonic clock

	rows             atomic.Int64
	requests, failed atomic.Int32 // failed counts writes of a batch

	details *opDetails // nil if only metrics are collected
}

// opDetails holds what spans, hooks and logs need besides metrics. Without them, an operation does not allocate it.
type opDetails struct {
	subject Subject
	start   time.Time
	span    trace.Span // nil if none is recorded

	mu     sync.Mutex
	events int // number of failed attempts recorded in the span
}

// epoch is the start of the clock for durations: one reading of that clock costs half of time.Now.
var epoch = time.Now()

// mostEvents is how many failed attempts a span records one by one.
const mostEvents = 10

type opKey struct{}

// From returns the operation of a context, or nil.
func From(ctx context.Context) *Op {
	o, _ := ctx.Value(opKey{}).(*Op)
	return o
}

// Begin begins an operation, and returns the context for its work. If nothing is reported, or if ctx already belongs to
// an operation of the same store, of which this one is a part, it returns ctx and a nil operation. All calls with a
// context pass through here, so Begin handles a nil context.
func (p *Probe) Begin(ctx context.Context, name Name, s Subject) (context.Context, *Op) {
	ctx = ctxerr.Given(ctx)
	if p == nil {
		return ctx, nil
	}
	traced := p.traces()
	if !traced && p.conf.Ended == nil && p.conf.Attempted == nil && p.logs == nil && !p.measured(ctx, name) {
		return ctx, nil
	}
	if o := From(ctx); o != nil && o.probe == p {
		return ctx, nil
	}
	if s.Batched && s.Batch < 2 {
		s.Batched, s.Batch = false, 0
	}
	o := &Op{ctx: ctx, probe: p, series: p.seriesOf(name, s), began: time.Since(epoch)}
	if traced || p.conf.Ended != nil || p.logs != nil {
		o.details = &opDetails{subject: s, start: time.Now()}
	}
	if traced {
		o.begin()
	}
	return (*opContext)(o), o
}

// opContext is the context for the work of an operation. It is the Op itself, which saves an allocation for each call.
type opContext Op

func (c *opContext) Deadline() (time.Time, bool) { return c.ctx.Deadline() }
func (c *opContext) Done() <-chan struct{}       { return c.ctx.Done() }
func (c *opContext) Err() error                  { return c.ctx.Err() }

func (c *opContext) Value(key any) any {
	if key == (opKey{}) {
		return (*Op)(c)
	}
	return c.ctx.Value(key)
}

// measured reports whether a histogram records the operation: views may drop each of them.
func (p *Probe) measured(ctx context.Context, name Name) bool {
	return p.duration.Enabled(ctx) || p.attempts.Enabled(ctx) || name.Reads() && p.rows.Enabled(ctx)
}

// begin starts the span.
func (o *Op) begin() {
	var span trace.Span
	opts := o.series.start
	if o.details.subject.Batched {
		opts = append(opts[:len(opts):len(opts)], trace.WithAttributes(attribute.Int(attrBatchSize, o.details.subject.Batch)))
	}
	opts = append(opts[:len(opts):len(opts)], trace.WithTimestamp(o.details.start))
	o.ctx, span = o.probe.tracer.Start(o.ctx, o.series.spanName, opts...)
	if span.IsRecording() {
		o.details.span = span
	}
}

// Returned adds to the rows that the operation has returned.
func (o *Op) Returned(rows int) {
	if o != nil {
		o.rows.Add(int64(rows))
	}
}

// Unstored adds to the writes of a batch that were not stored.
func (o *Op) Unstored(writes int) {
	if o != nil {
		o.failed.Add(int32(writes))
	}
}

// End ends the operation with its error.
func (o *Op) End(err error) {
	if o == nil {
		return
	}
	p := o.probe
	took := time.Since(epoch) - o.began
	if err != nil && p.conf.Absent != nil && p.conf.Absent(err) {
		err = nil
	}
	var f failure
	recorded := o.series.ok
	if err != nil {
		f = o.failureOf(err)
		recorded = o.series.failed(f)
	}
	p.duration.Record(o.ctx, took.Seconds(), recorded...)
	rows := o.rows.Load()
	if o.series.reads {
		p.rows.Record(o.ctx, rows, recorded...)
	}
	t := o.details
	if t == nil {
		return
	}
	if t.span != nil {
		o.endSpan(took, rows, err, f)
	}
	if err != nil {
		o.log(err, f)
	}
	if p.conf.Ended != nil {
		p.conf.Ended(o.ctx, Ended{
			Name: o.series.name, Subject: t.subject, Start: t.start, Duration: took,
			Rows: int(rows), Requests: int(o.requests.Load()), Err: err, Type: f.kind,
		})
	}
}

func (o *Op) endSpan(took time.Duration, rows int64, err error, f failure) {
	attrs := make([]attribute.KeyValue, 0, 5)
	attrs = append(attrs, attribute.Int(attrCalls, int(o.requests.Load())))
	if o.series.reads {
		attrs = append(attrs, attribute.Int64(attrRows, rows))
	}
	if n := o.failed.Load(); n > 0 {
		attrs = append(attrs, attribute.Int(attrFailed, int(n)))
	}
	if err != nil {
		attrs = append(attrs, f.attributes()...)
		text := ""
		if o.probe.conf.Details {
			text = err.Error()
		}
		o.details.span.SetStatus(codes.Error, text)
	}
	o.details.span.SetAttributes(attrs...)
	o.details.span.End(trace.WithTimestamp(o.details.start.Add(took)))
}

// Attempt is a running request. The zero Attempt reports nothing.
type Attempt struct {
	op     *Op
	method string
	began  time.Duration // by the monotonic clock
	start  time.Time     // zero if not needed
	n      int32
}

// Attempt begins a request by a gRPC method, such as /google.bigtable.v2.Bigtable/MutateRow.
func (o *Op) Attempt(method string) Attempt {
	if o == nil {
		return Attempt{}
	}
	a := Attempt{op: o, method: method[1:], began: time.Since(epoch), n: o.requests.Add(1)}
	if o.probe.conf.Attempted != nil {
		a.start = time.Now()
	}
	return a
}

// End ends the request with its error.
func (a Attempt) End(err error) {
	if a.op == nil {
		return
	}
	p := a.op.probe
	took := time.Since(epoch) - a.began
	if err == nil {
		p.attempts.Record(a.op.ctx, took.Seconds(), a.op.answered(a.method)...)
	} else {
		f := p.failureOf(err)
		p.attempts.Record(a.op.ctx, took.Seconds(), p.triedOf(a.op, a.method, f)...)
		if t := a.op.details; t != nil && t.span != nil {
			a.event(f)
		}
	}
	if p.conf.Attempted != nil {
		p.conf.Attempted(a.op.ctx, Attempted{Operation: a.op.series.name, Method: a.method, Start: a.start, Duration: took, Err: err})
	}
}

// event records a failed attempt in the span.
func (a Attempt) event(f failure) {
	t := a.op.details
	t.mu.Lock()
	t.events++
	many := t.events > mostEvents
	t.mu.Unlock()
	if many {
		return
	}
	attrs := append(f.attributes(), attribute.String(attrMethod, a.method), attribute.Int(attrAttempt, int(a.n)))
	t.span.AddEvent(eventFailed, trace.WithAttributes(attrs...))
}

// answered returns the attributes of successful attempts, created once for each method.
func (o *Op) answered(method string) []metric.RecordOption {
	for i := range o.series.answered {
		a := o.series.answered[i].Load()
		if a == nil {
			made := &answered{method, o.probe.triedOf(o, method, failure{})}
			o.series.answered[i].CompareAndSwap(nil, made)
			return made.opts
		}
		if a.method == method {
			return a.opts
		}
	}
	return o.probe.triedOf(o, method, failure{})
}

// triedOf returns the attributes of attempts.
func (p *Probe) triedOf(o *Op, method string, f failure) []metric.RecordOption {
	attrs := append(p.base[:len(p.base):len(p.base)], attribute.String(attrOperation, o.series.operation), attribute.String(attrMethod, method))
	if f.kind != "" {
		attrs = append(attrs, f.attributes()...)
	}
	return recordOptions(attrs)
}

// traces reports whether spans are recorded.
func (p *Probe) traces() bool {
	return p.tracer != nil && !(p.waiting && otel.GetTracerProvider() == unset)
}

// Reads reports whether the operation returns rows.
func (n Name) Reads() bool { return operations[n].reads }
