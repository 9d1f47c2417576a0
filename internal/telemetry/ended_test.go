package telemetry_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/codes"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/rollup"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// TestSaltsThatAreLeftEarly checks that parallel requests that end because they are no longer needed do not count as
// failed.
func TestSaltsThatAreLeftEarly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		salted := tsdb.MustDefine("salted", tsdb.Key("site", "device"), codec.JSON[float64](), tsdb.SchemaOptions{Salts: 4})
		w := newWorld(t, tsdb.Telemetry{}, tsdbtest.Options{})
		store, conn := tsdbtest.Open(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Telemetry: w.watch, Timeouts: tsdb.Timeouts{Read: time.Hour, Scan: time.Hour}}}, salted)
		repo := salted.For(store, acme)
		var points []tsdb.Point[float64]
		for i := range 20 {
			for j := range 40 {
				points = append(points, tsdb.Point[float64]{Entity: tsdb.NewEntity("berlin", fmt.Sprint(i)), Time: w.base.Add(time.Duration(j) * time.Minute)})
			}
		}
		if _, err := repo.PutMany(t.Context(), points); err != nil {
			t.Fatal(err)
		}
		w.forget()
		conn.Inject(tsdbtest.Delay(time.Minute).On(tsdbtest.ReadRows).Skip(4))
		for _, err := range repo.Under(tsdb.AllEntities()).Latest(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			break
		}
		s := w.span("under.Latest tidemark")
		if len(s.Events) > 0 || s.Status.Code != codes.Unset {
			t.Errorf("got status %v and events %v, want none", s.Status, s.Events)
		}
		all, bad := w.counted("tidemark.attempt.duration", "db.operation.name=under.Latest"), w.counted("tidemark.attempt.duration", "db.operation.name=under.Latest", "error.type=CANCELLED")
		if all < 5 || bad != 0 {
			t.Errorf("got %d requests, %d failed; want at least 5, none failed", all, bad)
		}
	})
}

// TestLoopThatPanics checks that a request ends if the loop over its rows panics.
func TestLoopThatPanics(t *testing.T) {
	ended := 0
	w := newWorld(t, tsdb.Telemetry{Hooks: tsdb.Hooks{Attempt: func(_ context.Context, a tsdb.Attempt) {
		if a.Operation == "Range" {
			ended++
		}
	}}}, tsdbtest.Options{})
	func() {
		defer func() { _ = recover() }()
		for range w.repo.Range(t.Context(), roof, tsdb.AllTime()) {
			panic("the loop's own")
		}
	}()
	if s := w.span("Range tidemark"); plain(s.Attributes)["tidemark.requests"] != "1" || ended != 1 {
		t.Errorf("got attributes %v and %d ended requests, want 1", plain(s.Attributes), ended)
	}
}

// TestCancelledWorker checks that a pass whose context ends with a cause, as that of signal.NotifyContext does, counts
// as cancelled by its caller.
func TestCancelledWorker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, out := logger(slog.LevelDebug)
		w := newWorld(t, tsdb.Telemetry{Logger: log}, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Timeouts: tsdb.Timeouts{Read: time.Hour, Scan: time.Hour}}})
		one := func(context.Context) iter.Seq2[tenant.ID, error] {
			return func(yield func(tenant.ID, error) bool) { yield(acme, nil) }
		}
		worker, err := rollup.NewWorker(w.store, rollup.WorkerOptions{Tenants: one}, schema)
		if err != nil {
			t.Fatal(err)
		}
		w.conn.Inject(tsdbtest.Delay(time.Minute).On(tsdbtest.ReadRows))
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(errors.New("terminated signal received")) })
		if _, err := worker.Pass(ctx); err == nil {
			t.Fatal("got nil, want an error")
		}
		if s := plain(w.span("rollup.Pass tidemark").Attributes); s["error.type"] != "CANCELLED" || s["db.response.status_code"] != "" {
			t.Error(s)
		}
		for _, l := range out.read(t) {
			if l.Operation == "rollup.Pass" && l.Level != "DEBUG" {
				t.Errorf("got log line %+v, want level DEBUG", l)
			}
		}
	})
}
