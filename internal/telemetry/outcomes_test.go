package telemetry_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/trace"
	api "go.opentelemetry.io/otel/trace"
	grpccodes "google.golang.org/grpc/codes"

	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/rollup"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

var nobody = tsdb.NewEntity("berlin", "nobody")

// TestNothingFoundIsNoError checks that an operation that finds nothing does not count as failed.
func TestNothingFoundIsNoError(t *testing.T) {
	for name, call := range map[string]func(context.Context, *world) error{
		"Get":    func(ctx context.Context, w *world) error { return second(w.repo.Get(ctx, nobody, w.base)) },
		"Latest": func(ctx context.Context, w *world) error { return second(w.repo.Latest(ctx, nobody)) },
		"AsOf":   func(ctx context.Context, w *world) error { return second(w.repo.AsOf(ctx, nobody, w.base)) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, tsdb.Telemetry{}, tsdbtest.Options{})
			if err := call(t.Context(), w); !errors.Is(err, tsdb.ErrNotFound) {
				t.Fatal(err)
			}
			s := w.span(name + " tidemark")
			attrs := plain(s.Attributes)
			if s.Status.Code != codes.Unset || attrs["error.type"] != "" || attrs["db.response.returned_rows"] != "0" || len(s.Events) > 0 {
				t.Errorf("got status %v and attributes %v, want no error and 0 rows", s.Status, attrs)
			}
			d := w.points("db.client.operation.duration", "db.operation.name="+name)
			if len(d) != 1 || d[0].attrs["error.type"] != "" || d[0].attrs["db.response.status_code"] != "" {
				t.Errorf("got durations %+v, want one without an error", d)
			}
		})
	}
	w := newWorld(t, tsdb.Telemetry{}, tsdbtest.Options{})
	if stored, err := w.repo.PutIfAbsent(t.Context(), roof, w.base, 7); stored || err != nil {
		t.Fatal(stored, err)
	}
	if s := w.span("PutIfAbsent tidemark"); s.Status.Code != codes.Unset {
		t.Errorf("PutIfAbsent of an existing point: got span %+v, want no error", s)
	}
}

// TestRetriesAreInTheSpan checks that one span covers all attempts and has an event for each failed one, and that the
// attempts metric counts each attempt.
func TestRetriesAreInTheSpan(t *testing.T) {
	for name, method := range map[string]tsdbtest.Method{
		"Put": tsdbtest.MutateRows, "PutIfAbsent": tsdbtest.CheckAndMutateRow, "Latest": tsdbtest.ReadRows, "BATCH Put": tsdbtest.MutateRows,
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, tsdb.Telemetry{}, tsdbtest.Options{})
			w.conn.Inject(tsdbtest.Fail(grpccodes.Unavailable).On(method).Times(2))
			var err error
			switch name {
			case "Put":
				err = w.repo.Put(t.Context(), roof, w.base, 1)
			case "PutIfAbsent":
				_, err = w.repo.PutIfAbsent(t.Context(), roof, w.base.Add(time.Hour), 1)
			case "Latest":
				_, err = w.repo.Latest(t.Context(), roof)
			default:
				_, err = w.repo.PutMany(t.Context(), []tsdb.Point[float64]{{Entity: roof, Time: w.base}, {Entity: nobody, Time: w.base}})
			}
			if err != nil {
				t.Fatal(err)
			}
			s := w.span(name + " tidemark")
			if s.Status.Code != codes.Unset || len(s.Events) != 2 {
				t.Fatalf("got status %v and events %v, want two events", s.Status, s.Events)
			}
			rpc := "google.bigtable.v2.Bigtable/" + string(method)
			first := 1
			if name == "PutIfAbsent" {
				first = 3 // the operation writes a mark and reads first
			}
			for i, e := range s.Events {
				want := map[string]string{"error.type": "UNAVAILABLE", "db.response.status_code": "UNAVAILABLE", "rpc.method": rpc, "tidemark.attempt": fmt.Sprint(first + i)}
				same(t, e.Name, plain(e.Attributes), want)
			}
			of := []string{"db.operation.name=" + name, "rpc.method=" + rpc}
			if n := w.counted("tidemark.attempt.duration", append(of, "error.type=UNAVAILABLE")...); n != 2 {
				t.Errorf("got %d failed attempts, want 2", n)
			}
			if n := w.counted("tidemark.attempt.duration", of...); n < 3 {
				t.Errorf("got %d attempts, want at least 3", n)
			}
			if n := w.counted("db.client.operation.duration", of[0]); n != 1 {
				t.Errorf("got %d operations, want 1", n)
			}
		})
	}
}

// TestManyFailedAttempts checks that a span has at most 10 events for failed attempts, and the number of all requests.
func TestManyFailedAttempts(t *testing.T) {
	w := newWorld(t, tsdb.Telemetry{}, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Timeouts: tsdb.Timeouts{Scan: 10 * time.Second}}})
	w.conn.Inject(tsdbtest.Fail(grpccodes.PermissionDenied).On(tsdbtest.ReadRows))
	entities := make([]tsdb.Entity, 100)
	for i := range entities {
		entities[i] = tsdb.NewEntity("berlin", fmt.Sprint(i))
	}
	if _, err := w.repo.LatestMany(t.Context(), entities, 1); err == nil {
		t.Fatal("got nil, want an error")
	}
	s := w.span("LatestMany tidemark")
	if len(s.Events) != 10 || plain(s.Attributes)["tidemark.requests"] != "100" {
		t.Errorf("got %d events and attributes %v, want 10 events of 100 requests", len(s.Events), plain(s.Attributes))
	}
}

// TestPartialFailure checks that a batch with one refused write fails, and that its span has the number of failed
// writes.
func TestPartialFailure(t *testing.T) {
	points := func(w *world) []tsdb.Point[float64] {
		return []tsdb.Point[float64]{{Entity: roof, Time: w.base}, {Entity: nobody, Time: w.base}, {Entity: tsdb.NewEntity("oslo", "a"), Time: w.base}}
	}
	bad := func(key string) bool { return strings.Contains(key, "nobody") && !strings.Contains(key, "_r") }
	for name, call := range map[string]func(context.Context, *world) error{
		"BATCH Put": func(ctx context.Context, w *world) error { return second(w.repo.PutMany(ctx, points(w))) },
		"BATCH Deliver": func(ctx context.Context, w *world) error {
			writer, err := w.store.NewWriter(tsdb.WriterOptions{Linger: time.Hour}) // Close sends all points together
			if err != nil {
				return err
			}
			for _, p := range points(w) {
				if err := w.repo.Via(writer).Enqueue(ctx, p.Entity, p.Time, p.Value); err != nil {
					w.Error(err)
				}
			}
			return writer.Close(ctx)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, tsdb.Telemetry{}, tsdbtest.Options{})
			w.conn.Inject(tsdbtest.FailEntries(grpccodes.FailedPrecondition, bad))
			if err := call(t.Context(), w); err == nil {
				t.Fatal("got nil, want an error")
			}
			s := w.span(name + " tidemark")
			attrs := plain(s.Attributes)
			if s.Status.Code != codes.Error || attrs["db.operation.batch.size"] != "3" || attrs["tidemark.batch.failed"] != "1" ||
				attrs["error.type"] != "FAILED_PRECONDITION" || attrs["db.response.status_code"] != "FAILED_PRECONDITION" {
				t.Errorf("got status %v and attributes %v", s.Status, attrs)
			}
			if at := w.atCreation(name + " tidemark"); at["db.operation.batch.size"] != "3" {
				t.Errorf("at creation: got attributes %v", at)
			}
			if n := w.counted("db.client.operation.duration", "db.operation.name="+name, "error.type=FAILED_PRECONDITION"); n != 1 {
				t.Errorf("got %d failed operations, want 1", n)
			}
			if n := w.counted("tidemark.attempt.duration", "db.operation.name="+name, "error.type=FAILED_PRECONDITION"); n != 0 {
				t.Errorf("got %d failed attempts, want 0: the request was answered", n)
			}
		})
	}
	t.Run("rollup.Add", func(t *testing.T) {
		w := newWorld(t, tsdb.Telemetry{}, tsdbtest.Options{})
		w.conn.Inject(tsdbtest.FailEntries(grpccodes.FailedPrecondition, func(key string) bool { return strings.Contains(key, "nobody") }))
		if _, err := rollup.NewAdder(once, w.repo, nil).AddMany(t.Context(), points(w)); err == nil {
			t.Fatal("got nil, want an error")
		}
		if attrs := plain(w.span("BATCH rollup.Add tidemark").Attributes); attrs["tidemark.batch.failed"] != "1" || attrs["db.operation.batch.size"] != "3" {
			t.Errorf("got attributes %v", attrs)
		}
	})
	t.Run("LatestMany", func(t *testing.T) {
		w := newWorld(t, tsdb.Telemetry{}, tsdbtest.Options{})
		w.conn.Inject(tsdbtest.Fail(grpccodes.Internal).On(tsdbtest.ReadRows).Times(1))
		w.conn.Inject(tsdbtest.Fail(grpccodes.PermissionDenied).On(tsdbtest.ReadRows).Times(1))
		_, err := w.repo.LatestMany(t.Context(), []tsdb.Entity{roof, nobody}, 1)
		var some *tsdb.ReadError
		if !errors.As(err, &some) {
			t.Fatal(err)
		}
		if attrs := plain(w.span("LatestMany tidemark").Attributes); attrs["error.type"] != "PERMISSION_DENIED" || attrs["db.operation.batch.size"] != "" {
			t.Errorf("got attributes %v", attrs)
		}
	})
}

// TestBatchOfOne checks that a batch of one write, or of none, does not count as a batch, as the conventions require.
func TestBatchOfOne(t *testing.T) {
	w := newWorld(t, tsdb.Telemetry{}, tsdbtest.Options{})
	if _, err := w.repo.PutMany(t.Context(), []tsdb.Point[float64]{{Entity: roof, Time: w.base}}); err != nil {
		t.Fatal(err)
	}
	if attrs := plain(w.span("Put tidemark").Attributes); attrs["db.operation.batch.size"] != "" || attrs["db.operation.name"] != "Put" {
		t.Errorf("one point: got attributes %v", attrs)
	}
	w.spans.Reset()
	if _, err := w.repo.PutMany(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if attrs := plain(w.span("Put tidemark").Attributes); attrs["db.operation.batch.size"] != "" {
		t.Errorf("no points: got attributes %v", attrs)
	}
}

// TestRefusedBeforeItIsSent checks that an operation that the SDK refuses has the type of the SDK's error, and no
// status of the service.
func TestRefusedBeforeItIsSent(t *testing.T) {
	w := newWorld(t, tsdb.Telemetry{}, tsdbtest.Options{})
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	for want, err := range map[string]error{
		"tsdb.ErrInvalid":        w.repo.Put(t.Context(), tsdb.NewEntity("one"), w.base, 1),
		"tsdb.ErrTenantMismatch": second(w.repo.Latest(tenant.NewContext(t.Context(), tenant.MustParse("other")), roof)),
		"tsdb.ErrExpired":        w.repo.Put(t.Context(), roof, w.base.AddDate(-1, 0, 0), 1),
		"CANCELLED":              second(w.repo.AsOf(gone, roof, w.base)),
	} {
		if err == nil {
			t.Fatal(want)
		}
		found := w.points("db.client.operation.duration", "error.type="+want)
		if len(found) != 1 || found[0].count != 1 {
			t.Fatalf("%s: got %+v for the error %v", want, found, err)
		}
		if code := found[0].attrs["db.response.status_code"]; (code == "") != strings.HasPrefix(want, "tsdb.") {
			t.Errorf("%s: got status %q, want none", want, code)
		}
	}
}

// TestTenantsAreCapped checks that a limited number of tenants have an attribute value of their own, and the others
// share one.
func TestTenantsAreCapped(t *testing.T) {
	w := newWorld(t, tsdb.Telemetry{Tenants: 3}, tsdbtest.Options{}) // acme is the first of the three
	writer, err := w.store.NewWriter(tsdb.WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 20 {
		repo := schema.For(w.store, tenant.MustParse(fmt.Sprintf("tenant-%02d", i)))
		if err := errors.Join(repo.Put(t.Context(), roof, w.base, 1), repo.Via(writer).Enqueue(t.Context(), roof, w.base, 1)); err != nil {
			t.Fatal(err)
		}
	}
	if err := writer.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := map[string]uint64{"tenant-00": 1, "tenant-01": 1, "_OTHER": 18}
	for _, p := range w.points("db.client.operation.duration", "db.operation.name=Put") {
		if name := p.attrs["tidemark.tenant"]; want[name] != p.count {
			t.Errorf("got %d operations of tenant %s", p.count, name)
		}
	}
	total := 0.0
	for _, p := range w.points("tidemark.writer.tenant.points") {
		if name := p.attrs["tidemark.tenant"]; name != "acme" && float64(want[name]) != p.sum {
			t.Errorf("got %v points of tenant %s", p.sum, name)
		}
		total += p.sum
	}
	if total != 20 {
		t.Errorf("got %v points, want 20", total)
	}
	for _, bytes := range w.points("tidemark.writer.tenant.bytes", "tidemark.tenant=tenant-00") {
		if bytes.sum < 50 || bytes.sum > 200 {
			t.Errorf("got %v bytes for a point, want 50 to 200", bytes.sum)
		}
	}
	if _, err := tsdb.New(nil, "t", tsdb.Options{}); err == nil {
		t.Error("got no tenant attribute")
	}
}

// TestNothingOfKeysOrPayloads checks that no attribute, event, status or log line has an entity, a tenant or a value,
// unless the options ask for it.
func TestNothingOfKeysOrPayloads(t *testing.T) {
	secret := tsdb.NewEntity("secretsite", "secretdevice")
	for _, details := range []bool{false, true} {
		var log strings.Builder
		logger := slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
		w := newWorld(t, tsdb.Telemetry{Logger: logger, IncludeErrorText: details}, tsdbtest.Options{})
		repo := schema.For(w.store, tenant.MustParse("secrettenant"))
		w.conn.Inject(tsdbtest.Fail(grpccodes.PermissionDenied))
		writer, err := w.store.NewWriter(tsdb.WriterOptions{DeliveryTimeout: time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		_ = repo.Put(t.Context(), secret, w.base, 424242)
		_, _ = repo.Latest(t.Context(), secret)
		_ = repo.Put(t.Context(), tsdb.NewEntity("secretsite"), w.base, 424242)
		_, _ = repo.PutMany(t.Context(), []tsdb.Point[float64]{{Entity: secret, Time: w.base}, {Entity: secret, Time: w.base.Add(1)}})
		_ = repo.Via(writer).Enqueue(t.Context(), secret, w.base, 424242)
		_ = writer.Close(t.Context())
		output := log.String() + fmt.Sprintf("%+v", w.spans.GetSpans()) + fmt.Sprintf("%+v", w.instruments())
		if !strings.Contains(output, "PERMISSION_DENIED") || log.Len() == 0 {
			t.Fatalf("got no error in the output: %s", output)
		}
		for _, word := range []string{"secretsite", "secretdevice", "secrettenant", "424242"} {
			if strings.Contains(output, word) && !details {
				t.Errorf("got %s in the output: %s", word, output)
			}
		}
		if details && !strings.Contains(log.String(), "tenant=secrettenant") {
			t.Errorf("got a log without the tenant: %s", log.String())
		}
	}
}

// TestSpansHaveTheirPlace checks that a call's span is a child of the caller's, and that the sampler decides whether
// there is one.
func TestSpansHaveTheirPlace(t *testing.T) {
	w := newWorld(t, tsdb.Telemetry{}, tsdbtest.Options{})
	ctx, parent := w.watch.TracerProvider.Tracer("program").Start(t.Context(), "request")
	if _, err := w.repo.Latest(ctx, roof); err != nil {
		t.Fatal(err)
	}
	for p, err := range w.repo.Range(ctx, roof, tsdb.AllTime()) { // the loop ends early, with a call inside
		if err != nil {
			t.Fatal(err)
		}
		if err := w.repo.Put(ctx, roof, p.Time, 1); err != nil {
			t.Fatal(err)
		}
		break
	}
	parent.End()
	for _, name := range []string{"Latest tidemark", "Range tidemark", "Put tidemark"} {
		s := w.span(name)
		if s.Parent.SpanID() != parent.SpanContext().SpanID() || s.Status.Code != codes.Unset || len(s.Events) > 0 {
			t.Errorf("got span %+v, want a child of the caller's without errors", s)
		}
	}
	if n := w.counted("tidemark.attempt.duration", "error.type=CANCELLED"); n != 0 {
		t.Error("a loop that ends early counts as a failed request")
	}

	never := trace.NewTracerProvider(trace.WithSampler(trace.NeverSample()), trace.WithSyncer(w.spans))
	w.spans.Reset()
	store, _ := tsdbtest.Open(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Telemetry: tsdb.Telemetry{TracerProvider: never}}}, schema)
	if err := store.Ping(t.Context()); err != nil || len(w.spans.GetSpans()) > 0 {
		t.Errorf("with a sampler that drops all: got %v and spans %v, want none", err, spanNames(w.spans.GetSpans()))
	}
	if api.SpanFromContext(t.Context()).IsRecording() {
		t.Error("got a span that did not end")
	}
}
