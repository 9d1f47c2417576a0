package tsdb

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/internal/ctxerr"
	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/store/points"
	"github.com/tidemark-go/tidemark/internal/telemetry"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tenant/limit"
)

// Telemetry says where a store tells what it does: traces and metrics by OpenTelemetry's database conventions, logs, and
// functions of the program's own. The zero value tells OpenTelemetry's global providers, which do nothing until the program
// sets them, whether before the store is opened or after, and logs nothing. What nobody listens to costs some nanoseconds a
// call, and no memory.
//
// Names, units and attributes are listed in docs/telemetry.md. No row key, entity or payload is ever an attribute; but the
// official client, which tells the global provider only, puts row keys into events of its own spans.
type Telemetry struct {
	// TracerProvider takes a span of each call, which covers its retries. Nil is otel.GetTracerProvider.
	TracerProvider trace.TracerProvider
	// MeterProvider takes the metrics. Nil is otel.GetMeterProvider.
	MeterProvider metric.MeterProvider
	// Logger is told what goes wrong with the service: the first fault of a kind at once, and those that follow in one line
	// each half minute at most. What the SDK refuses by itself is for the level of debugging. Nil logs nothing.
	Logger *slog.Logger
	// IncludeErrorText puts tenants and the texts of errors into logs, and the texts into the status of spans. Texts may hold row keys
	// and values. False leaves both out.
	IncludeErrorText bool
	// Tenants is how many tenants have an attribute of their own, tidemark.tenant, in spans and metrics: the first that come,
	// up to 1,000. All others share "_OTHER". Each one makes series of its own in what stores the metrics. Zero leaves
	// the attribute out.
	Tenants int
	// Namespace is the attribute db.namespace. Empty is the project and the instance with "|" between them in a store of
	// Open, and no such attribute in one of New.
	Namespace string
	// Hooks are functions of the program's own. The zero value is none.
	Hooks Hooks
}

// Hooks are told of each call and of each request, for programs that do not use OpenTelemetry. They are called on the
// goroutine of the call, by many at once, and hold it up while they run; they must not call the store. A hook that is nil is
// not called.
type Hooks struct {
	// Operation is told of each call that has ended, and of each batch that a writer has sent.
	Operation func(context.Context, Operation)
	// Attempt is told of each request to Bigtable's data API that has ended, also of those that are made again.
	Attempt func(context.Context, Attempt)
}

// Operation is a call that has ended, as a hook is told of it.
type Operation struct {
	// Name is that of the method, such as "Latest"; of what other packages do with their name before it, "rollup.Buckets". What
	// a writer sends is "Deliver".
	Name string
	// Tenant and Dataset are what it was about; empty where that is none, or several.
	Tenant, Dataset string
	// Batch is how many writes a PutMany, an AddMany or a Deliver held, where they were two or more; zero for all others.
	Batch    int
	Start    time.Time
	Duration time.Duration
	// Rows is how many points, entities or buckets a read returned; of a sequence, how many were taken.
	Rows int
	// Attempts is how many requests to the data API it took; zero where the cache answered, or nothing was sent.
	Attempts int
	// Err is the error that the caller got, but not ErrNotFound: that there is nothing is an answer.
	Err error
	// ErrorType is what Err is in metrics: the name of a gRPC code, such as "UNAVAILABLE", or of an error, such as
	// "tsdb.ErrInvalid" or "tenants.ErrConflict", or what the method ErrorType() string of an error of the program's own
	// returns; else "_OTHER". Empty without an Err.
	ErrorType string
}

// Attempt is a request to Bigtable's data API that has ended, as a hook is told of it.
type Attempt struct {
	// Operation is the Name of the operation that it was made for.
	Operation string
	// Method is that of the API, such as "google.bigtable.v2.Bigtable/ReadRows".
	Method   string
	Start    time.Time
	Duration time.Duration
	// Err is what the request as a whole ended with. A bulk write that was answered has none, whatever became of its rows.
	Err error
}

// mostTenants bounds Telemetry.Tenants.
const mostTenants = 1000

func (t Telemetry) check() error {
	if t.Tenants < 0 || t.Tenants > mostTenants {
		return invalid.New(ErrInvalid, "Telemetry.Tenants", fmt.Sprint(t.Tenants), fmt.Sprintf("0 to %d", mostTenants))
	}
	return nil
}

// open returns the probe of a store.
func (t Telemetry) open(s *Store) *telemetry.Probe {
	c := telemetry.Config{
		TracerProvider: t.TracerProvider, MeterProvider: t.MeterProvider, Logger: t.Logger, Details: t.IncludeErrorText, Tenants: t.Tenants,
		Namespace: t.Namespace, Table: s.core.Name,
		Kind:   errorKind,
		Absent: func(err error) bool { return errors.Is(err, ErrNotFound) && !errors.Is(err, ErrNoTable) },
		Unreadable: func(err error) bool {
			return errors.Is(err, ErrForeignRow) || errors.Is(err, codec.ErrCorrupt) || errors.Is(err, codec.ErrUnknownTag)
		},
		First: firstFailure,
	}
	if s.core.Cache != nil {
		c.Cache = func() telemetry.CacheFigures {
			f := s.CacheStats()
			return telemetry.CacheFigures{Hits: int64(f.Hits), Misses: int64(f.Misses), Shared: int64(f.Shared), Entries: int64(f.Entries), Bytes: f.Bytes}
		}
	}
	if hook := t.Hooks.Operation; hook != nil {
		c.Ended = func(ctx context.Context, e telemetry.Ended) {
			hook(ctx, Operation{
				Name: e.Name.String(), Tenant: e.Subject.Tenant, Dataset: e.Subject.Dataset, Batch: e.Subject.Batch,
				Start: e.Start, Duration: e.Duration, Rows: e.Rows, Attempts: e.Requests, Err: e.Err, ErrorType: e.Type,
			})
		}
	}
	if hook := t.Hooks.Attempt; hook != nil {
		c.Attempted = func(ctx context.Context, a telemetry.Attempted) {
			hook(ctx, Attempt{Operation: a.Operation.String(), Method: a.Method, Start: a.Start, Duration: a.Duration, Err: a.Err})
		}
	}
	return telemetry.Open(c)
}

// kinds are the errors that metrics name, those first that others wrap.
var kinds = []struct {
	err  error
	name string
}{
	{ErrTenantMismatch, "tsdb.ErrTenantMismatch"},
	{ErrNoTenant, "tsdb.ErrNoTenant"},
	{ErrDatasetDeleted, "tsdb.ErrDatasetDeleted"},
	{ErrErased, "tsdb.ErrErased"},
	{ErrRemoving, "tsdb.ErrRemoving"},
	{ErrClosed, "tsdb.ErrClosed"},
	{ErrWriterClosed, "tsdb.ErrWriterClosed"},
	{ErrBufferFull, "tsdb.ErrBufferFull"},
	{ErrDeliveryTimeout, "tsdb.ErrDeliveryTimeout"},
	{ErrLate, "tsdb.ErrLate"},
	{ErrTooFarAhead, "tsdb.ErrTooFarAhead"},
	{ErrExpired, "tsdb.ErrExpired"},
	{ErrExists, "tsdb.ErrExists"},
	{points.ErrNoMerge, "tsdb.ErrNoMerge"},
	{ErrCursor, "tsdb.ErrCursor"},
	{ErrForeignRow, "tsdb.ErrForeignRow"},
	{ErrNoAdmin, "tsdb.ErrNoAdmin"},
	{ErrSchemaConflict, "tsdb.ErrSchemaConflict"},
	{ErrNoConditionalAggregates, "tsdb.ErrNoConditionalAggregates"},
	{ErrUnguardedClient, "tsdb.ErrUnguardedClient"},
	{codec.ErrEncode, "codec.ErrEncode"},
	{codec.ErrReadOnly, "codec.ErrReadOnly"},
	{codec.ErrUnknownTag, "codec.ErrUnknownTag"},
	{codec.ErrCorrupt, "codec.ErrCorrupt"},
	{limit.ErrExceeded, "limit.ErrExceeded"},
	{tenant.ErrInvalid, "tenant.ErrInvalid"},
	{ErrInvalid, "tsdb.ErrInvalid"},
}

// errorKind names an error that is no answer of the service; empty for one that has no name.
func errorKind(err error) string {
	for _, k := range kinds {
		if errors.Is(err, k.err) {
			return k.name
		}
	}
	return ""
}

// firstFailure returns the first of several failures that one error is about. What errors.Is and errors.As find in such an
// error may be a later one.
func firstFailure(err error) error {
	var batch *BatchError
	var read *ReadError
	var points PointErrors
	switch {
	case errors.As(err, &batch) && len(batch.Failed) > 0:
		return firstFailure(batch.Failed[0].Outcome.Err)
	case errors.As(err, &read) && len(read.Failed) > 0:
		return firstFailure(read.Failed[0].Err)
	case errors.As(err, &points) && len(points) > 0:
		return points[0]
	}
	return err
}

// begin begins an operation of a repository.
func (r *Repository[T]) begin(ctx context.Context, name telemetry.Name) (context.Context, *telemetry.Op) {
	return r.beginMany(ctx, name, 0, false)
}

// beginMany begins an operation that may be a batch.
func (r *Repository[T]) beginMany(ctx context.Context, name telemetry.Name, n int, batched bool) (context.Context, *telemetry.Op) {
	if r == nil || r.store == nil || r.store.core == nil || r.schema == nil {
		return ctxerr.Given(ctx), nil
	}
	return r.store.core.Watch.Begin(ctx, name, telemetry.Subject{Tenant: r.rows.Tenant.String(), Dataset: r.schema.d.Name, Batch: n, Batched: batched})
}

// begin begins an operation of the store's own.
func (s *Store) begin(ctx context.Context, name telemetry.Name) (context.Context, *telemetry.Op) {
	if s == nil || s.core == nil {
		return ctxerr.Given(ctx), nil
	}
	return s.core.Watch.Begin(ctx, name, telemetry.Subject{})
}

// endOne ends a read of one point.
func endOne(op *telemetry.Op, err error) {
	if err == nil {
		op.Returned(1)
	}
	op.End(err)
}

// endWrites ends a batch of writes.
func endWrites(op *telemetry.Op, err error) {
	if op == nil {
		return
	}
	var failed *BatchError
	if errors.As(err, &failed) {
		op.Unstored(len(failed.Failed))
	}
	op.End(err)
}
