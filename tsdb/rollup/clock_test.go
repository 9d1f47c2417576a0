package rollup_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/gc"
	trusted "github.com/tidemark-go/tidemark/internal/clock"
	"github.com/tidemark-go/tidemark/internal/store/tenancy"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/embedded"
	"github.com/tidemark-go/tidemark/tsdb/rollup"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

// wrong is a machine's clock in a synctest bubble, and its error.
type wrong struct{ by atomic.Int64 }

func (w *wrong) now() time.Time       { return time.Now().Add(time.Duration(w.by.Load())) }
func (w *wrong) set(by time.Duration) { w.by.Store(int64(by)) }

// clockBubble runs a test with a simulated clock, which passes minutes and hours. Over TCP the test is skipped.
func clockBubble(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	if os.Getenv("TIDEMARK_TEST_TCP") != "" {
		t.Skip("needs a simulated clock; it runs in process")
	}
	synctest.Test(t, f)
}

const year = 365 * 24 * time.Hour

func month() tsdb.SchemaOptions {
	return tsdb.SchemaOptions{Retention: gc.Class{Name: "d30", Policy: gc.MaxAge(30 * 24 * time.Hour)}}
}

// TestWorkerWithAClockAhead: a pass with a clock years ahead clears no mark, and the next pass with the right time
// computes the usual results.
func TestWorkerWithAClockAhead(t *testing.T) {
	clockBubble(t, func(t *testing.T) {
		w := new(wrong)
		store, err := embedded.New(t.Context(), embedded.Options{StoreOptions: tsdb.StoreOptions{Clock: w.now}, Dir: t.TempDir(), GCInterval: -1, Exclusive: true})
		if err != nil {
			t.Fatal(err)
		}
		defer store.Close()
		checkAhead(t, store, w)
	})
}

// checkAhead is that test on a store whose clock w sets.
func checkAhead(t *testing.T, store *tsdb.Store, w *wrong) {
	hour := rollup.MustDefine("hour", window.Every(time.Hour), measures(), rollup.Options{})
	opts := month()
	opts.Rollups = []tsdb.Rollup{hour}
	schema := tsdb.MustDefine("r", tsdb.Key("site", "device"), codec.JSON[reading](), opts)
	if err := store.Ensure(t.Context(), schema); err != nil && !errors.Is(err, tenancy.ErrNoAdmin) {
		t.Fatal(err)
	}
	repo := schema.For(store, acme)
	worker, err := rollup.NewWorker(store, rollup.WorkerOptions{Tenants: only(acme)}, schema)
	if err != nil {
		t.Fatal(err)
	}
	if err := repo.Put(t.Context(), roof, time.Now().Add(-3*time.Hour), reading{TempC: 5}); err != nil {
		t.Fatal(err)
	}
	time.Sleep(3 * time.Minute)
	for _, by := range []time.Duration{4 * year, 31 * 24 * time.Hour, time.Minute} {
		w.set(by)
		if p, err := worker.Pass(t.Context()); !errors.Is(err, trusted.ErrAhead) || p.Marks != 0 {
			t.Errorf("a pass with a clock %v ahead: %+v, %v; want ErrClock", by, p, err)
		}
		w.set(0)
	}
	if p, err := worker.Pass(t.Context()); err != nil || p.Buckets != 1 || p.Marks != 1 {
		t.Errorf("a pass with the right time: %+v, %v; want one bucket and one mark", p, err)
	}
}

// TestWorkerAsksTheServiceForTheTime: a worker that starts with a clock ahead of the service's clock does nothing until
// that is over. With a right clock it works at once.
func TestWorkerAsksTheServiceForTheTime(t *testing.T) {
	clockBubble(t, func(t *testing.T) {
		hour := rollup.MustDefine("hour", window.Every(time.Hour), measures(), rollup.Options{})
		opts := month()
		opts.Rollups = []tsdb.Rollup{hour}
		_, conn := tsdbtest.Open(t, tsdbtest.Options{}, tsdb.MustDefine("r", tsdb.Key("site", "device"), codec.JSON[reading](), opts))
		w := new(wrong)
		client, _ := tsdbtest.Clients(t, conn)
		store, err := tsdb.New(client, tsdbtest.Table, tsdb.Options{StoreOptions: tsdb.StoreOptions{Clock: w.now}})
		if err != nil {
			t.Fatal(err)
		}
		defer store.Close()
		checkAhead(t, store, w)
	})
}

// TestAheadOfTheServiceForLong: a clock that stays ahead at constant distance is still not trusted against the
// service's clock.
func TestAheadOfTheServiceForLong(t *testing.T) {
	clockBubble(t, func(t *testing.T) {
		hour := rollup.MustDefine("hour", window.Every(time.Hour), measures(), rollup.Options{})
		schema := tsdb.MustDefine("r", tsdb.Key("site", "device"), codec.JSON[reading](), tsdb.SchemaOptions{Rollups: []tsdb.Rollup{hour}})
		_, conn := tsdbtest.Open(t, tsdbtest.Options{}, schema)
		w := new(wrong)
		w.set(year)
		client, _ := tsdbtest.Clients(t, conn)
		store, err := tsdb.New(client, tsdbtest.Table, tsdb.Options{StoreOptions: tsdb.StoreOptions{Clock: w.now}})
		if err != nil {
			t.Fatal(err)
		}
		defer store.Close()
		worker, err := rollup.NewWorker(store, rollup.WorkerOptions{Tenants: only(acme)}, schema)
		if err != nil {
			t.Fatal(err)
		}
		for range 60 {
			if _, err := worker.Pass(t.Context()); !errors.Is(err, trusted.ErrAhead) {
				t.Fatalf("a pass a year ahead of the service: %v, want ErrClock", err)
			}
			time.Sleep(time.Minute)
		}
		w.set(0)
		if _, err := worker.Pass(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
}

// TestClockStepsDuringAPass: the clock steps after a pass has computed a row and before it clears the marks, and
// another point is written. The mark of that point stays, whichever way the clock stepped.
func TestClockStepsDuringAPass(t *testing.T) {
	for _, step := range []time.Duration{-2 * time.Hour, -5 * time.Minute, -40 * time.Second, 40 * time.Second} {
		t.Run(fmt.Sprint(step), func(t *testing.T) {
			clockBubble(t, func(t *testing.T) {
				var do func()
				o := newOne(t, rollup.Options{}, gc.Class{}, grpc.WithChainUnaryInterceptor(
					func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoker grpc.UnaryInvoker, opts ...grpc.CallOption) error {
						if f := do; f != nil && strings.HasSuffix(method, string(tsdbtest.CheckAndMutateRow)) {
							do = nil
							f()
						}
						return invoker(ctx, method, req, reply, cc, opts...)
					}))
				o.Set(start.Add(3 * time.Hour))
				o.put(t, start, 1)
				o.Add(3 * time.Minute)
				stepped := false
				do = func() {
					stepped = true
					o.Add(step)
					o.put(t, start.Add(time.Minute), 2)
				}
				o.pass(t)
				if !stepped {
					t.Fatal("the pass replaced no row")
				}
				o.Set(start.Add(5 * time.Hour))
				o.want(t, "read", o.sums(t), 3)
				o.pass(t)
				o.want(t, "stored", o.stored(t), 3)
			})
		})
	}
}

// TestMarksFromTheFuture: a point that was written with a clock years ahead is in the stored buckets soon after the
// clock is right.
func TestMarksFromTheFuture(t *testing.T) {
	clockBubble(t, func(t *testing.T) {
		o := newOne(t, rollup.Options{}, gc.Class{})
		o.Set(start.Add(4 * year))
		o.put(t, start, 1)
		o.Set(start.Add(3 * time.Hour))
		o.put(t, start.Add(time.Minute), 2)
		if p := o.pass(t); p.Marks != 0 || p.Waiting != 1 {
			t.Errorf("a mark from the future: %+v, want it to wait", p)
		}
		o.want(t, "stored", o.stored(t))
		o.want(t, "read", o.sums(t), 3)
		o.Add(3 * time.Minute)
		if p := o.pass(t); p.Marks != 1 || p.Buckets != 1 {
			t.Errorf("some minutes later: %+v, want one bucket", p)
		}
		o.want(t, "stored", o.stored(t), 3)
		if p := o.pass(t); p != (rollup.Pass{Tenants: 1}) {
			t.Errorf("a pass without marks: %+v", p)
		}
	})
}

// TestMessagesWithAClockAhead: a message that is delivered again while the clock is ahead of the row's memory counts
// once.
func TestMessagesWithAClockAhead(t *testing.T) {
	clockBubble(t, func(t *testing.T) {
		w := new(wrong)
		store, err := embedded.New(t.Context(), embedded.Options{StoreOptions: tsdb.StoreOptions{Clock: w.now}, Dir: t.TempDir(), GCInterval: -1, Exclusive: true})
		if err != nil {
			t.Fatal(err)
		}
		defer store.Close()
		r := rollup.MustDefine("hour", window.Every(time.Hour), viewMeasures, rollup.Options{Mode: rollup.ByMessage, Remember: time.Hour})
		schema := tsdb.MustDefine("ads", tsdb.Key("ad"), codec.JSON[view](), tsdb.SchemaOptions{Rollups: []tsdb.Rollup{r}})
		if err := store.Ensure(t.Context(), schema); err != nil {
			t.Fatal(err)
		}
		in := rollup.NewAdder(r, schema.For(store, acme), nil)
		at, ad := time.Now(), tsdb.NewEntity("7")
		if added, err := in.AddMessage(t.Context(), "m", ad, at, view{}); err != nil || !added {
			t.Fatalf("the first delivery: %v, %v", added, err)
		}
		w.set(24 * time.Hour)
		if added, err := in.AddMessage(t.Context(), "m", ad, at, view{}); err != nil || added {
			t.Errorf("delivered again with a clock a day ahead: %v, %v; want false", added, err)
		}
		w.set(0)
		time.Sleep(2 * time.Hour)
		if added, err := in.AddMessage(t.Context(), "m", ad, at, view{}); err != nil || !added {
			t.Errorf("delivered again after two hours, after Remember: %v, %v; want true", added, err)
		}
	})
}

// TestMessagesAfterALongAbsence: a program that was away for days does not trust its clock at first. A message that it
// counts then is remembered from the real time on: delivered again once the clock is trusted, it still counts once.
func TestMessagesAfterALongAbsence(t *testing.T) {
	clockBubble(t, func(t *testing.T) {
		dir := t.TempDir()
		r := rollup.MustDefine("hour", window.Every(time.Hour), viewMeasures, rollup.Options{Mode: rollup.ByMessage, Remember: time.Hour})
		schema := tsdb.MustDefine("ads", tsdb.Key("ad"), codec.JSON[view](), tsdb.SchemaOptions{Rollups: []tsdb.Rollup{r}})
		open := func() (*rollup.Adder[view], func()) {
			store, err := embedded.New(t.Context(), embedded.Options{Dir: dir, GCInterval: -1, Exclusive: true})
			if err != nil {
				t.Fatal(err)
			}
			if err := store.Ensure(t.Context(), schema); err != nil {
				t.Fatal(err)
			}
			return rollup.NewAdder(r, schema.For(store, acme), nil), func() {
				if err := store.Close(); err != nil {
					t.Error(err)
				}
			}
		}
		_, end := open()
		end()
		time.Sleep(3 * 24 * time.Hour)
		in, end := open()
		defer end()
		at, ad := time.Now(), tsdb.NewEntity("7")
		for minutes, want := range []bool{true, false, false, false} {
			if added, err := in.AddMessage(t.Context(), "m", ad, at, view{}); err != nil || added != want {
				t.Errorf("%d minutes after the start: %v, %v; want %v", 6*minutes, added, err, want)
			}
			time.Sleep(6 * time.Minute)
		}
		time.Sleep(time.Hour)
		if added, err := in.AddMessage(t.Context(), "m", ad, at, view{}); err != nil || !added {
			t.Errorf("delivered again after Remember: %v, %v; want true", added, err)
		}
	})
}
