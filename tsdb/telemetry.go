package tsdb

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/codecerr"
	"github.com/tidemark-go/tidemark/internal/ctxerr"
	"github.com/tidemark-go/tidemark/internal/ingest/buffer"
	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/store/ensure"
	"github.com/tidemark-go/tidemark/internal/store/points"
	"github.com/tidemark-go/tidemark/internal/store/tenancy"
	"github.com/tidemark-go/tidemark/internal/telemetry"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tenant/limit"
)

// Telemetry configures what a store reports: traces and metrics by OpenTelemetry's database conventions, logs, and
// calls of hooks. The zero value uses OpenTelemetry's global providers, which may be set before or after the store is
// opened, and logs nothing. Disabled parts cost some nanoseconds per call and no memory.
//
// docs/telemetry.md lists names, units and attributes. Row keys, entities and payloads are never attributes. However,
// the official client, which uses only the global provider, puts row keys into events of its own spans.
type Telemetry struct {
	// TracerProvider receives one span per call, including its retries. Nil is otel.GetTracerProvider.
	TracerProvider trace.TracerProvider
	// MeterProvider receives the metrics. Nil is otel.GetMeterProvider.
	MeterProvider metric.MeterProvider
	// Logger receives failures of the service: the first of each kind at once, further ones summarized at most every
	// half minute. Calls that the SDK refuses are logged at debug level. Nil logs nothing.
	Logger *slog.Logger
	// IncludeErrorText adds tenants and error texts to logs, and error texts to the status of spans. The texts may
	// contain row keys and values.
	IncludeErrorText bool
	// Tenants is the number of tenants with their own attribute, tidemark.tenant, in spans and metrics: the first ones
	// that the store sees, up to 1,000. All others share "_OTHER". Each tenant adds time series to the metrics backend.
	// Zero omits the attribute.
	Tenants int
	// Namespace is the attribute db.namespace. Empty means "project|instance" for Open, and no attribute for New.
	Namespace string
	// Hooks are functions of the program. The zero value is none.
	Hooks Hooks
}

// Hooks receive each call and each request, for programs that do not use OpenTelemetry. They run on the goroutine of
// the call and delay it; many goroutines call them at once. They must not call the store. A nil hook is not called.
type Hooks struct {
	// Operation receives each finished call, and each batch that a writer has sent.
	Operation func(context.Context, Operation)
	// Attempt receives each finished request to Bigtable's data API, including retries.
	Attempt func(context.Context, Attempt)
}

// Operation is a finished call, for Hooks.
type Operation struct {
	// Name is the method's name, such as "Latest", for other packages with the package, such as "rollup.Buckets". The
	// batches of a writer are "Deliver".
	Name string
	// Tenant and Dataset are those of the call; empty if it has none or several.
	Tenant, Dataset string
	// Batch is the number of writes in a PutMany, an AddMany or a Deliver of two or more; zero for all others.
	Batch    int
	Start    time.Time
	Duration time.Duration
	// Rows is the number of points, entities or buckets that a read returned; for a sequence, the number taken.
	Rows int
	// Attempts is the number of requests to the data API; zero if the cache answered or nothing was sent.
	Attempts int
	// Err is the error that the caller got, except ErrNotFound, which counts as success.
	Err error
	// ErrorType is Err as in metrics: a gRPC code such as "UNAVAILABLE", a sentinel such as "tsdb.ErrInvalid" or
	// "tenants.ErrConflict", the result of the error's own method ErrorType() string, or else "_OTHER". It is empty if
	// Err is nil.
	ErrorType string
}

// Attempt is a finished request to Bigtable's data API, for Hooks.
type Attempt struct {
	// Operation is the Name of the operation.
	Operation string
	// Method is that of the API, such as "google.bigtable.v2.Bigtable/ReadRows".
	Method   string
	Start    time.Time
	Duration time.Duration
	// Err is the error of the whole request. It is nil for a bulk write with a response, even if rows failed.
	Err error
}

func (t Telemetry) check() error {
	return invalid.Range(ErrInvalid, "Telemetry.Tenants", t.Tenants, 0, 1000, "0 to 1000")
}

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
	if cache := s.core.Cache; cache != nil {
		c.Cache = func() telemetry.CacheFigures {
			f := cache.Stats()
			return telemetry.CacheFigures{Hits: int64(f.Hits), Misses: int64(f.Misses), Shared: int64(f.Shared), Entries: int64(f.Entries), Bytes: int64(f.Bytes)}
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

// kinds are the error names in metrics. An error that others wrap comes after them.
var kinds = []struct {
	err  error
	name string
}{
	{ErrTenantMismatch, "tsdb.ErrTenantMismatch"},
	{ErrNoTenant, "tsdb.ErrNoTenant"},
	{tenancy.ErrDatasetDeleted, "tsdb.ErrDatasetDeleted"},
	{ErrErased, "tsdb.ErrErased"},
	{ErrRemoving, "tsdb.ErrRemoving"},
	{buffer.ErrClosed, "tsdb.ErrWriterClosed"},
	{ErrClosed, "tsdb.ErrClosed"},
	{ErrBufferFull, "tsdb.ErrBufferFull"},
	{buffer.ErrTimeout, "tsdb.ErrDeliveryTimeout"},
	{ErrLate, "tsdb.ErrLate"},
	{ErrTooFarAhead, "tsdb.ErrTooFarAhead"},
	{ErrExpired, "tsdb.ErrExpired"},
	{ErrExists, "tsdb.ErrExists"},
	{points.ErrNoMerge, "tsdb.ErrNoMerge"},
	{ErrCursor, "tsdb.ErrCursor"},
	{ErrForeignRow, "tsdb.ErrForeignRow"},
	{tenancy.ErrNoAdmin, "tsdb.ErrNoAdmin"},
	{tenancy.ErrSchemaConflict, "tsdb.ErrSchemaConflict"},
	{ErrUnreadableEntry, "tsdb.ErrUnreadableEntry"},
	{ensure.ErrNoConditionalAggregates, "tsdb.ErrNoConditionalAggregates"},
	{bt.ErrUnguarded, "tsdb.ErrUnguardedClient"},
	{codec.ErrEncode, "codec.ErrEncode"},
	{codecerr.ErrReadOnly, "codec.ErrReadOnly"},
	{codec.ErrUnknownTag, "codec.ErrUnknownTag"},
	{codec.ErrCorrupt, "codec.ErrCorrupt"},
	{limit.ErrExceeded, "limit.ErrExceeded"},
	{tenant.ErrInvalid, "tenant.ErrInvalid"},
	{ErrInvalid, "tsdb.ErrInvalid"},
}

// errorKind returns the name of an error that is not a gRPC status, or "".
func errorKind(err error) string {
	for _, k := range kinds {
		if errors.Is(err, k.err) {
			return k.name
		}
	}
	return ""
}

// firstFailure returns the first of several failures in one error. errors.Is and errors.As may find a later one.
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

func (s *Store) begin(ctx context.Context, name telemetry.Name) (context.Context, *telemetry.Op) {
	if s == nil || s.core == nil {
		return ctxerr.Given(ctx), nil
	}
	return s.core.Watch.Begin(ctx, name, telemetry.Subject{})
}

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
