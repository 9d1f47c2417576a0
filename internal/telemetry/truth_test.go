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
	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/rollup"
	"github.com/tidemark-go/tidemark/tsdb/tenants"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

// TestFirstFailureNamesTheBatch checks that a batch with several failures has the error type of the first, even if a
// later one came from the service or sorts before it.
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
			t.Fatal("got nil, want an error")
		}
		attrs := plain(w.span("BATCH Put tidemark").Attributes)
		if attrs["error.type"] != want || (attrs["db.response.status_code"] == "") != (want != "FAILED_PRECONDITION") || attrs["tidemark.batch.failed"] != "3" {
			t.Errorf("%s first: got attributes %v", want, attrs)
		}
	}
	w.spans.Reset()
	w.conn.Inject(tsdbtest.Fail(grpccodes.PermissionDenied).On(tsdbtest.ReadRows))
	if _, err := w.repo.LatestMany(t.Context(), []tsdb.Entity{tsdb.NewEntity("one"), roof}, 1); err == nil {
		t.Fatal("got nil, want an error")
	}
	if attrs := plain(w.span("LatestMany tidemark").Attributes); attrs["error.type"] != "tsdb.ErrInvalid" {
		t.Errorf("got attributes %v, want tsdb.ErrInvalid", attrs)
	}
}

// TestLogLevels checks the log levels of failures: unreadable stored data is an error, not a refusal, and a cancelled
// call is no fault of the service.
func TestLogLevels(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, out := logger(slog.LevelDebug)
		w := newWorld(t, tsdb.Telemetry{Logger: log}, tsdbtest.Options{})
		texts := tsdb.MustDefine("readings", tsdb.Key("site", "device"), codec.JSON[[]string](), tsdb.SchemaOptions{Retention: gc.Class{Name: "d90", Policy: gc.MaxAge(90 * 24 * time.Hour)}})
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
						t.Errorf("got log line %+v, want %+v", l, want)
					}
				}
			}
			if !found {
				t.Errorf("got no log line for %s", want.Operation)
			}
		}
	})
}

// TestHedgeThatIsNotNeeded checks that a hedged request that is cancelled because another one answered does not count
// as failed.
func TestHedgeThatIsNotNeeded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, tsdb.Telemetry{}, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Timeouts: tsdb.Timeouts{Read: time.Hour, Scan: time.Hour}}})
		w.conn.Inject(tsdbtest.Delay(time.Minute).On(tsdbtest.ReadRows).Times(1))
		if _, err := w.repo.Latest(t.Context(), roof, tsdb.Hedge{After: 10 * time.Millisecond, MaxRatio: 1}); err != nil {
			t.Fatal(err)
		}
		s := w.span("Latest tidemark")
		if len(s.Events) > 0 || s.Status.Code != codes.Unset || plain(s.Attributes)["tidemark.requests"] != "2" {
			t.Errorf("got events %v and attributes %v, want no events and 2 requests", s.Events, plain(s.Attributes))
		}
		if all, bad := w.counted("tidemark.attempt.duration", "db.operation.name=Latest"), w.counted("tidemark.attempt.duration", "db.operation.name=Latest", "error.type=CANCELLED"); all != 2 || bad != 0 {
			t.Errorf("got %d requests, %d failed; want 2, none failed", all, bad)
		}
	})
}

// TestPollsReturnWhatTheyRead checks that the rows of a follower's polls are all that it read, and not only the new
// points.
func TestPollsReturnWhatTheyRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, tsdb.Telemetry{}, tsdbtest.Options{})
		for i := range 5 {
			if err := w.repo.Put(t.Context(), roof, time.Now().Add(time.Duration(-i)*time.Second), 1); err != nil {
				t.Fatal(err)
			}
		}
		f, err := w.repo.Follow(t.Context(), roof, tsdb.FollowOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = f.Close() }()
		w.conn.Reset()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		for p, err := range f.Points(ctx) {
			if err == nil {
				t.Errorf("%v is delivered, although it was there before", p)
			}
		}
		w.forgetNothing()
		read, polls := w.conn.Counts().RowsReturned, w.points("db.client.response.returned_rows", "db.operation.name=follow.Poll")
		if read < 5 || len(polls) != 1 || polls[0].sum != float64(read) {
			t.Errorf("a poll that read %d rows is reported as %+v", read, polls)
		}
	})
}

// TestGapsThatAreTooMany checks that an error that the caller gets at the end of a read makes the operation fail.
func TestGapsThatAreTooMany(t *testing.T) {
	w := newWorld(t, tsdb.Telemetry{}, tsdbtest.Options{})
	r := rollup.For(hour, w.repo)
	err := last(r.WithGaps(window.Options{Gaps: window.Null, MaxFilled: 2}).Buckets(t.Context(), roof, tsdb.Between(w.base, w.base.Add(24*time.Hour)), tsdb.OldestFirst))
	if !errors.Is(err, window.ErrTooManyFilled) {
		t.Fatal(err)
	}
	if s := w.span("rollup.Buckets tidemark"); s.Status.Code != codes.Error || plain(s.Attributes)["db.response.returned_rows"] != "3" {
		t.Errorf("got status %v and attributes %v, want an error after 3 rows", s.Status, plain(s.Attributes))
	}
	w.spans.Reset()
	err = last(r.WithGaps(window.Options{Gaps: window.Null, MaxFilled: -1}).Buckets(t.Context(), roof, tsdb.AllTime(), tsdb.OldestFirst))
	if err == nil {
		t.Fatal("got nil, want an error")
	}
	if s := w.span("rollup.Buckets tidemark"); s.Status.Code != codes.Error {
		t.Errorf("got status %v and attributes %v, want an error", s.Status, plain(s.Attributes))
	}
}

// TestScope checks the version of the conventions in the instrumentation scope.
func TestScope(t *testing.T) {
	w := newWorld(t, tsdb.Telemetry{}, tsdbtest.Options{})
	if err := w.store.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
	if s := w.span("Ping tidemark").InstrumentationScope; s.SchemaURL != semconv.SchemaURL {
		t.Errorf("got scope %+v", s)
	}
}

// TestHookThatUsesAnotherStore checks that a call on another store is an operation of its own, even in a context of the
// first store's operation.
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
		t.Errorf("got attributes %v, want a request", attrs)
	}
}

// TestWriterThatIsClosedInAHurry checks that the metrics count the points that Close gives up, although Close does not
// wait for them.
func TestWriterThatIsClosedInAHurry(t *testing.T) {
	w := newWorld(t, tsdb.Telemetry{}, tsdbtest.Options{})
	writer, err := w.store.NewWriter(tsdb.WriterOptions{Linger: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	var logged []error
	done := make(chan struct{})
	for i := range 100 {
		if err := w.repo.Via(writer).EnqueueFunc(t.Context(), roof, w.base.Add(time.Duration(i)*time.Second), 1, func(o tsdb.Outcome) {
			if logged = append(logged, o.Err); len(logged) == 100 {
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
		t.Errorf("got %v ended points in the metric, want 100", sum)
	}
	if got := w.level("tidemark.writer.buffer.capacity.points"); got != 0 {
		t.Errorf("got a capacity of %v points from a closed writer, want none", got)
	}
}

// TestLoggerThatAsksTheWriter checks that a logger may call the writer's Stats, also while it logs that the journal
// failed.
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
	if err := writer.Flush(ctx); !errors.Is(err, tsdb.ErrDamaged) {
		t.Errorf("Flush: got %v", err)
	}
	_ = writer.Close(ctx)
	logged := false
	for _, l := range out.read(t) {
		logged = logged || l.Msg == "the journal does nothing any more"
	}
	if !logged {
		t.Error("got no log line about the failed journal")
	}
}

// asking is a log handler that calls Stats, as one does that adds the figures to each line.
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

// TestLoopThatIsLeftLate checks that a loop that ends after its context has ended, before it got an error, is not a
// failed operation.
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
		w.repo.Under(tsdb.AllEntities()).Latest(t.Context())(func(_ tsdb.Point[float64], err error) bool { return leave(err) })
		w.repo.Under(tsdb.AllEntities()).Entities(t.Context(), tsdb.AllTime())(func(_ tsdb.Entity, err error) bool { return leave(err) })
		rollup.For(hour, w.repo).Buckets(t.Context(), roof, tsdb.AllTime(), tsdb.OldestFirst)(func(_ window.Bucket, err error) bool { return leave(err) })
		tenants.List(t.Context(), w.store, tenants.ListOptions{})(func(_ tenants.Tenant, err error) bool { return leave(err) })
		for _, name := range []string{"Range", "under.Latest", "under.Entities", "rollup.Buckets", "tenants.List"} {
			s := w.span(name + " tidemark")
			if s.Status.Code != codes.Unset || plain(s.Attributes)["db.response.returned_rows"] != "1" || s.EndTime.Sub(s.StartTime) != time.Minute {
				t.Errorf("%s: got status %v and attributes %v", name, s.Status, plain(s.Attributes))
			}
		}
	})
}

// TestNothingAfterClose checks that a collection of metrics does not call a closed store.
func TestNothingAfterClose(t *testing.T) {
	w := newWorld(t, tsdb.Telemetry{}, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Cache: tsdb.CacheOptions{Entries: 10}}})
	w.forgetNothing()
	if p := w.points("tidemark.cache.entries"); len(p) != 1 {
		t.Fatalf("before Close: got cache metrics %+v, want one", p)
	}
	if err := w.store.Close(); err != nil {
		t.Fatal(err)
	}
	w.forgetNothing()
	if p := w.points("tidemark.cache.entries"); len(p) > 0 {
		t.Errorf("after Close: got cache metrics %+v, want none", p)
	}
}

// TestDeliveryOfSeveral checks that a delivery names its tenant only if all its points belong to one, and that refused
// points are not counted as accepted.
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
		t.Errorf("got attributes %v, want no tenant and no dataset", attrs)
	}
	if _, err := w.repo.Via(writer).EnqueueMany(t.Context(), []tsdb.Point[float64]{{Entity: roof, Time: w.base}}); err == nil {
		t.Fatal("EnqueueMany after Close: got nil, want an error")
	}
	if got := w.level("tidemark.writer.tenant.points", "tidemark.tenant=acme"); got != 1 {
		t.Errorf("got %v accepted points, want 1", got)
	}
	if got := w.level("tidemark.writer.requests.inflight"); got != 0 {
		t.Errorf("got %v requests in flight, want 0", got)
	}
}

// TestDeliveryOfSeveralDatasets checks that a delivery of two datasets names the tenant and neither dataset.
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
		t.Errorf("got attributes %v, want the tenant and no dataset", attrs)
	}
}
