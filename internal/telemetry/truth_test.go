package telemetry_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	grpccodes "google.golang.org/grpc/codes"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/rollup"
	"github.com/tidemark-go/tidemark/tsdb/tenants"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

// TestFirstFailureNamesTheBatch: of several different failures it is the first that counts, also where a later one is an
// answer of the service, or has a name that comes first elsewhere.
func TestFirstFailureNamesTheBatch(t *testing.T) {
	w := newWorld(t, tsdb.Telemetry{}, tsdbtest.Options{})
	w.conn.Inject(tsdbtest.FailEntries(grpccodes.FailedPrecondition, func(string) bool { return true }))
	expired := tsdb.Point[float64]{Entity: roof, Time: w.base.AddDate(-1, 0, 0)}
	invalid := tsdb.Point[float64]{Entity: tsdb.NewEntity("one"), Time: w.base}
	refused := tsdb.Point[float64]{Entity: roof, Time: w.base}
	for want, batch := range map[string][]tsdb.Point[float64]{
		"tsdb.ErrInvalid":     {invalid, expired, refused},
		"tsdb.ErrExpired":     {expired, refused, invalid},
		"FAILED_PRECONDITION": {refused, invalid, expired},
	} {
		w.spans.Reset()
		if _, err := w.repo.PutMany(t.Context(), batch); err == nil {
			t.Fatal("it succeeded")
		}
		attrs := plain(w.span("BATCH Put tidemark").Attributes)
		if attrs["error.type"] != want || (attrs["db.response.status_code"] == "") != (want != "FAILED_PRECONDITION") || attrs["tidemark.batch.failed"] != "3" {
			t.Errorf("%s first: %v", want, attrs)
		}
	}
	w.spans.Reset()
	w.conn.Inject(tsdbtest.Fail(grpccodes.PermissionDenied).On(tsdbtest.ReadRows))
	if _, err := w.repo.LatestMany(t.Context(), []tsdb.Entity{tsdb.NewEntity("one"), roof}); err == nil {
		t.Fatal("it succeeded")
	}
	if attrs := plain(w.span("LatestMany tidemark").Attributes); attrs["error.type"] != "tsdb.ErrInvalid" {
		t.Errorf("%v", attrs)
	}
}

// TestLogLevels: what is stored and cannot be read is no refusal, and a caller who goes away is no fault of the service.
func TestLogLevels(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, out := logger(slog.LevelDebug)
		w := newWorld(t, tsdb.Telemetry{Logger: log}, tsdbtest.Options{})
		texts := tsdb.MustDefine("readings", tsdb.Key("site", "device"), codec.JSON[[]string](), tsdb.SchemaOptions{Retention: schema.Retention()})
		if _, err := texts.For(w.store, acme).Latest(t.Context(), roof); !errors.Is(err, codec.ErrCorrupt) {
			t.Fatal(err)
		}
		if err := w.repo.Put(t.Context(), roof, w.base.AddDate(-1, 0, 0), 1); !errors.Is(err, tsdb.ErrExpired) {
			t.Fatal(err)
		}
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := w.repo.AsOf(gone, roof, w.base); !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		w.conn.Inject(tsdbtest.Delay(time.Second).On(tsdbtest.ReadRows))
		late, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		if _, err := w.repo.LatestN(late, roof, 3); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		for _, want := range []line{
			{Operation: "Latest", Level: "WARN", Msg: "operation failed", ErrorType: "codec.ErrCorrupt"},
			{Operation: "Put", Level: "DEBUG", Msg: "operation refused", ErrorType: "tsdb.ErrExpired"},
			{Operation: "AsOf", Level: "DEBUG", Msg: "operation given up by the caller", ErrorType: "CANCELLED"},
			{Operation: "LatestN", Level: "WARN", Msg: "operation failed", ErrorType: "DEADLINE_EXCEEDED"},
		} {
			found := false
			for _, l := range out.read(t) {
				if l.Operation == want.Operation {
					found = true
					if l.Level != want.Level || l.Msg != want.Msg || l.ErrorType != want.ErrorType {
						t.Errorf("%+v, want %+v", l, want)
					}
				}
			}
			if !found {
				t.Errorf("%s is not told", want.Operation)
			}
		}
	})
}

// TestHedgeThatIsNotNeeded: the request that is broken off, as the other has answered, did not fail.
func TestHedgeThatIsNotNeeded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, tsdb.Telemetry{}, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Timeouts: tsdb.Timeouts{Read: time.Hour, Scan: time.Hour}}})
		w.conn.Inject(tsdbtest.Delay(time.Minute).On(tsdbtest.ReadRows).Times(1))
		if _, err := w.repo.Latest(t.Context(), roof, tsdb.Hedge{After: 10 * time.Millisecond, MaxRatio: 1}); err != nil {
			t.Fatal(err)
		}
		s := w.span("Latest tidemark")
		if len(s.Events) > 0 || s.Status.Code != codes.Unset || plain(s.Attributes)["tidemark.requests"] != "2" {
			t.Errorf("%v %v", s.Events, plain(s.Attributes))
		}
		if all, bad := w.counted("tidemark.attempt.duration", "db.operation.name=Latest"), w.counted("tidemark.attempt.duration", "db.operation.name=Latest", "error.type=CANCELLED"); all != 2 || bad != 0 {
			t.Errorf("%d requests, %d failed", all, bad)
		}
	})
}

// TestGapsThatAreTooMany: what the caller gets in the end is how the operation ends.
func TestGapsThatAreTooMany(t *testing.T) {
	w := newWorld(t, tsdb.Telemetry{}, tsdbtest.Options{})
	r := rollup.For(hour, w.repo)
	err := last(r.WithGaps(window.Options{Gaps: window.Null, MaxFilled: 2}).Buckets(t.Context(), roof, tsdb.Between(w.base, w.base.Add(24*time.Hour)), tsdb.OldestFirst))
	if !errors.Is(err, window.ErrTooManyFilled) {
		t.Fatal(err)
	}
	if s := w.span("rollup.Buckets tidemark"); s.Status.Code != codes.Error || plain(s.Attributes)["db.response.returned_rows"] != "3" {
		t.Errorf("%v %v", s.Status, plain(s.Attributes))
	}
	w.spans.Reset()
	err = last(r.WithGaps(window.Options{Gaps: window.Null, MaxFilled: -1}).Buckets(t.Context(), roof, tsdb.AllTime(), tsdb.OldestFirst))
	if err == nil {
		t.Fatal("it succeeded")
	}
	if s := w.span("rollup.Buckets tidemark"); s.Status.Code != codes.Error {
		t.Errorf("%v %v", s.Status, plain(s.Attributes))
	}
}

// TestScope says which version of the conventions holds.
func TestScope(t *testing.T) {
	w := newWorld(t, tsdb.Telemetry{}, tsdbtest.Options{})
	if err := w.store.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
	if s := w.span("Ping tidemark").InstrumentationScope; s.SchemaURL != semconv.SchemaURL {
		t.Errorf("%+v", s)
	}
}

// TestHookThatUsesAnotherStore: what another store does is its own operation, also in a context of the first one's.
func TestHookThatUsesAnotherStore(t *testing.T) {
	other := newWorld(t, tsdb.Telemetry{}, tsdbtest.Options{})
	w := newWorld(t, tsdb.Telemetry{Hooks: tsdb.Hooks{Operation: func(ctx context.Context, o tsdb.Operation) {
		if o.Name == "Ping" {
			_ = other.repo.Put(ctx, roof, other.base, o.Duration.Seconds())
		}
	}}}, tsdbtest.Options{})
	if err := w.store.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
	if attrs := plain(other.span("Put tidemark").Attributes); attrs["tidemark.requests"] == "0" {
		t.Errorf("%v", attrs)
	}
}

// TestWriterThatIsClosedInAHurry: the points that it gives up then are counted, though Close does not wait for them.
func TestWriterThatIsClosedInAHurry(t *testing.T) {
	w := newWorld(t, tsdb.Telemetry{}, tsdbtest.Options{})
	writer, err := w.store.NewWriter(tsdb.WriterOptions{Linger: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	var told []error
	done := make(chan struct{})
	for i := range 100 {
		if err := w.repo.Via(writer).EnqueueFunc(t.Context(), roof, w.base.Add(time.Duration(i)*time.Second), 1, func(o tsdb.Outcome) {
			if told = append(told, o.Err); len(told) == 100 {
				close(done)
			}
		}); err != nil {
			t.Fatal(err)
		}
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	_ = writer.Close(gone)
	<-done
	sum := 0.0
	for _, p := range w.points("tidemark.writer.points") {
		sum += p.sum
	}
	if sum != 100 {
		t.Errorf("%v points have ended, by the metric", sum)
	}
	if got := w.level("tidemark.writer.buffer.capacity.points"); got != 0 {
		t.Errorf("room for %v points in a writer that is closed", got)
	}
}

// TestLoggerThatAsksTheWriter: a logger may ask for the writer's figures, also when it is told that the journal failed.
func TestLoggerThatAsksTheWriter(t *testing.T) {
	log, out := logger(slog.LevelInfo)
	var stats atomic.Pointer[func()]
	w := newWorld(t, tsdb.Telemetry{Logger: slog.New(asking{log.Handler(), &stats})}, tsdbtest.Options{})
	dir := t.TempDir()
	writer, err := w.store.NewWriter(tsdb.WriterOptions{BufferPoints: 10, Journal: tsdb.JournalOptions{Dir: dir}})
	if err != nil {
		t.Fatal(err)
	}
	ask := func() { _ = writer.Stats(); _ = w.reader.Collect(t.Context(), new(metricdata.ResourceMetrics)) }
	stats.Store(&ask)
	end := w.conn.Outage()
	for i := range 50 {
		if err := w.repo.Via(writer).Enqueue(t.Context(), roof, w.base.Add(time.Duration(i)*time.Second), 1); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Truncate(filepath.Join(dir, "journal.db"), 0); err != nil {
		t.Fatal(err)
	}
	end()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if err := writer.Flush(ctx); !errors.Is(err, tsdb.ErrJournalDamaged) {
		t.Errorf("Flush = %v", err)
	}
	_ = writer.Close(ctx)
	told := false
	for _, l := range out.read(t) {
		told = told || l.Msg == "the journal does nothing any more"
	}
	if !told {
		t.Error("it is not told")
	}
}

// asking is a logger's handler that asks for figures, as one that adds them to each line does.
type asking struct {
	slog.Handler
	stats *atomic.Pointer[func()]
}

func (a asking) Handle(ctx context.Context, r slog.Record) error {
	if f := a.stats.Load(); f != nil {
		(*f)()
	}
	return a.Handler.Handle(ctx, r)
}

func (a asking) WithAttrs(attrs []slog.Attr) slog.Handler {
	return asking{a.Handler.WithAttrs(attrs), a.stats}
}

// TestLoopThatIsLeftLate: who leaves a loop when its time is over got no error, and neither did the operation.
func TestLoopThatIsLeftLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, tsdb.Telemetry{}, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Timeouts: tsdb.Timeouts{Read: time.Second, Scan: time.Second}}})
		leave := func(err error) bool {
			if err != nil {
				t.Error(err)
			}
			time.Sleep(time.Minute)
			return false
		}
		w.repo.Range(t.Context(), roof, tsdb.AllTime())(func(_ tsdb.Point[float64], err error) bool { return leave(err) })
		w.repo.LatestUnder(t.Context(), tsdb.AllEntities())(func(_ tsdb.Point[float64], err error) bool { return leave(err) })
		w.repo.Entities(t.Context(), tsdb.AllEntities())(func(_ tsdb.Entity, err error) bool { return leave(err) })
		rollup.For(hour, w.repo).Buckets(t.Context(), roof, tsdb.AllTime(), tsdb.OldestFirst)(func(_ window.Bucket, err error) bool { return leave(err) })
		tenants.List(t.Context(), w.store, tenants.ListOptions{})(func(_ tenants.Tenant, err error) bool { return leave(err) })
		for _, name := range []string{"Range", "LatestUnder", "Entities", "rollup.Buckets", "tenants.List"} {
			s := w.span(name + " tidemark")
			if s.Status.Code != codes.Unset || plain(s.Attributes)["db.response.returned_rows"] != "1" || s.EndTime.Sub(s.StartTime) != time.Minute {
				t.Errorf("%s: %v %v", name, s.Status, plain(s.Attributes))
			}
		}
	})
}

// TestNothingAfterClose: what is collected then asks nothing of a store that is closed.
func TestNothingAfterClose(t *testing.T) {
	w := newWorld(t, tsdb.Telemetry{}, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Cache: tsdb.CacheOptions{Entries: 10}}})
	w.forgetNothing()
	if p := w.points("tidemark.cache.entries"); len(p) != 1 {
		t.Fatalf("%+v", p)
	}
	if err := w.store.Close(); err != nil {
		t.Fatal(err)
	}
	w.forgetNothing()
	if p := w.points("tidemark.cache.entries"); len(p) > 0 {
		t.Errorf("%+v", p)
	}
}

// TestDeliveryOfSeveral: what a writer sends is of a tenant only where it is of one; a point that it refuses it did not take.
func TestDeliveryOfSeveral(t *testing.T) {
	w := newWorld(t, tsdb.Telemetry{Tenants: 10}, tsdbtest.Options{})
	writer, err := w.store.NewWriter(tsdb.WriterOptions{Linger: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	other := schema.For(w.store, tenant.MustParse("other"))
	if err := errors.Join(w.repo.Via(writer).Enqueue(t.Context(), roof, w.base, 1), other.Via(writer).Enqueue(t.Context(), roof, w.base, 1), writer.Close(t.Context())); err != nil {
		t.Fatal(err)
	}
	if attrs := plain(w.span("BATCH Deliver tidemark").Attributes); attrs["tidemark.tenant"] != "" || attrs["tidemark.dataset"] != "" {
		t.Errorf("%v", attrs)
	}
	if _, err := w.repo.Via(writer).EnqueueMany(t.Context(), []tsdb.Point[float64]{{Entity: roof, Time: w.base}}); err == nil {
		t.Fatal("a closed writer took a point")
	}
	if got := w.level("tidemark.writer.tenant.points", "tidemark.tenant=acme"); got != 1 {
		t.Errorf("%v points were taken", got)
	}
	if got := w.level("tidemark.writer.requests.inflight"); got != 0 {
		t.Errorf("%v requests under way", got)
	}
}

// TestDeliveryOfSeveralDatasets names the tenant, and neither dataset.
func TestDeliveryOfSeveralDatasets(t *testing.T) {
	w := newWorld(t, tsdb.Telemetry{Tenants: 10}, tsdbtest.Options{})
	other := tsdb.MustDefine("other", tsdb.Key("site", "device"), codec.JSON[float64](), tsdb.SchemaOptions{})
	if err := w.store.Ensure(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	writer, err := w.store.NewWriter(tsdb.WriterOptions{Linger: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(w.repo.Via(writer).Enqueue(t.Context(), roof, w.base, 1), other.For(w.store, acme).Via(writer).Enqueue(t.Context(), roof, w.base, 1), writer.Close(t.Context())); err != nil {
		t.Fatal(err)
	}
	if attrs := plain(w.span("BATCH Deliver tidemark").Attributes); attrs["tidemark.tenant"] != "acme" || attrs["tidemark.dataset"] != "" {
		t.Errorf("%v", attrs)
	}
}
