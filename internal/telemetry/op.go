package telemetry

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/tidemark-go/tidemark/internal/ctxerr"
)

// Op is an operation under way. Nil is one that nobody watches. Its
// methods may be called by several goroutines; End ends it, once.
type Op struct {
	ctx    context.Context // of everything that is done for it, without the operation itself
	probe  *Probe
	series *series
	began  time.Duration // by the monotonic clock

	rows             atomic.Int64
	requests, failed atomic.Int32 // failed are writes of a batch

	told *told // nil where only metrics are
}

// told is what spans, hooks and logs tell of an operation beside what metrics do, which pay for no more than they need.
type told struct {
	subject Subject
	start   time.Time
	span    trace.Span // nil where none is recorded

	mu     sync.Mutex
	events int // of failed attempts, in the span
}

// epoch is from when the clock counts that durations are taken by: one reading of it costs half of time.Now.
var epoch = time.Now()

// mostEvents is how many failed attempts a span tells of, one by one.
const mostEvents = 10

type opKey struct{}

// From returns the operation that a context is of, or nil.
func From(ctx context.Context) *Op {
	o, _ := ctx.Value(opKey{}).(*Op)
	return o
}

// Begin begins an operation, and returns the context for what is done for it. Where nobody watches, or ctx is of an
// operation of the same store already, of which this one is a part, that is ctx, and the operation is nil. All calls with a context pass here, so that a nil one is looked for here.
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
		o.told = &told{subject: s, start: time.Now()}
	}
	if traced {
		o.begin()
	}
	return context.WithValue(o.ctx, opKey{}, o), o
}

// measured reports whether a histogram takes anything of the operation: views may drop each of them.
func (p *Probe) measured(ctx context.Context, name Name) bool {
	return p.duration.Enabled(ctx) || p.attempts.Enabled(ctx) || operations[name].reads && p.rows.Enabled(ctx)
}

// begin starts the span.
func (o *Op) begin() {
	var span trace.Span
	opts := o.series.start
	if o.told.subject.Batched {
		opts = append(opts[:len(opts):len(opts)], trace.WithAttributes(attribute.Int(attrBatchSize, o.told.subject.Batch)))
	}
	opts = append(opts[:len(opts):len(opts)], trace.WithTimestamp(o.told.start))
	o.ctx, span = o.probe.tracer.Start(o.ctx, o.series.spanName, opts...)
	if span.IsRecording() {
		o.told.span = span
	}
}

// Returned counts rows that the operation has returned.
func (o *Op) Returned(rows int) {
	if o != nil {
		o.rows.Add(int64(rows))
	}
}

// Unstored counts writes of a batch that were not stored.
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
	t := o.told
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
		o.told.span.SetStatus(codes.Error, text)
	}
	o.told.span.SetAttributes(attrs...)
	o.told.span.End(trace.WithTimestamp(o.told.start.Add(took)))
}

// Attempt is a request under way. The zero Attempt is one that nobody watches.
type Attempt struct {
	op     *Op
	method string
	began  time.Duration // by the monotonic clock
	start  time.Time     // zero where nobody asks for it
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
		if t := a.op.told; t != nil && t.span != nil {
			a.event(f)
		}
	}
	if p.conf.Attempted != nil {
		p.conf.Attempted(a.op.ctx, Attempted{Operation: a.op.series.name, Method: a.method, Start: a.start, Duration: took, Err: err})
	}
}

// event tells the span of a failed attempt.
func (a Attempt) event(f failure) {
	t := a.op.told
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

// answered returns the attributes of attempts that did not fail, made once for the methods that come.
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
