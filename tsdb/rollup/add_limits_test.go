package rollup_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/internal/inside"
	"github.com/tidemark-go/tidemark/internal/proof/calls"
	"github.com/tidemark-go/tidemark/internal/proof/testkit"
	"github.com/tidemark-go/tidemark/internal/rollupadd"
	"github.com/tidemark-go/tidemark/internal/store/tenancy"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/rollup"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

// adders are all ways to add an event to a rollup, as functions.
func adders(r *rollup.Rollup[view], repo *tsdb.Repository[view], w *tsdb.Writer) map[string]func(context.Context, tsdb.Entity, time.Time, view) error {
	one := func(in interface {
		AddMany(context.Context, []tsdb.Point[view]) ([]tsdb.Outcome, error)
	},
	) func(context.Context, tsdb.Entity, time.Time, view) error {
		return func(ctx context.Context, e tsdb.Entity, at time.Time, v view) error {
			outcomes, err := in.AddMany(ctx, []tsdb.Point[view]{{Entity: e, Time: at, Value: v}})
			if (err == nil) != (outcomes[0].Err == nil) {
				return fmt.Errorf("the error %w and the outcome %v contradict each other", err, outcomes[0])
			}
			return err
		}
	}
	n := 0
	return map[string]func(context.Context, tsdb.Entity, time.Time, view) error{
		"Add": rollup.NewAdder(r, repo, w).Add,
		"AddFunc": func(ctx context.Context, e tsdb.Entity, at time.Time, v view) error {
			reported := make(chan tsdb.Outcome, 1)
			err := rollup.NewAdder(r, repo, w).AddFunc(ctx, e, at, v, func(o tsdb.Outcome) { reported <- o })
			if o := <-reported; err == nil && o.Err != nil {
				return &tsdb.WriteError{Outcome: o}
			}
			return err
		},
		"AddMany": one(rollup.NewAdder(r, repo, w)),
		"AddMessage": func(ctx context.Context, e tsdb.Entity, at time.Time, v view) error {
			n++
			_, err := rollup.NewAdder(r, repo, nil).AddMessage(ctx, fmt.Sprint(n), e, at, v)
			return err
		},
	}
}

// TestEveryWayToAddIsTested fails if a method that adds events is not in the table of adders.
func TestEveryWayToAddIsTested(t *testing.T) {
	tested := adders(nil, nil, nil)
	for _, c := range calls.Of("rollup.Adder.") {
		name := strings.TrimPrefix(c.Name(), "rollup.Adder.")
		if tested[name] == nil {
			t.Errorf("%s is not in the table of adders", c.Name())
		}
	}
}

// adds reports whether a call adds to rollups of a mode.
func adds(name string, mode rollup.Mode) bool {
	switch name {
	case "Add", "AddMany":
		return mode == rollup.Once || mode == rollup.ByStream
	case "AddMessage":
		return mode == rollup.ByMessage
	}
	return mode == rollup.ByStream
}

// TestAddLimits: each way to add rejects an invalid event before it sends anything.
func TestAddLimits(t *testing.T) {
	for _, mode := range []rollup.Mode{rollup.Once, rollup.ByStream, rollup.ByMessage} {
		clock := testkit.NewClock(start)
		month := gc.Class{Name: "m", Policy: gc.MaxAge(30 * 24 * time.Hour)}
		r := rollup.MustDefine("hour", window.Every(time.Hour), viewMeasures, rollup.Options{Mode: mode, Retention: month})
		s := tsdb.MustDefine("views", tsdb.Key("ip", "ad"), codec.JSON[view](), tsdb.SchemaOptions{
			Rollups: []tsdb.Rollup{r}, MaxLate: 40 * 24 * time.Hour, MaxFuture: time.Hour,
		})
		other := rollup.MustDefine("hour", window.Every(time.Hour), viewMeasures, rollup.Options{Mode: mode, Retention: month})
		store, conn, _ := tsdbtest.OpenTable(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Clock: clock.Now}}, s)
		plain, err := store.NewWriter(tsdb.WriterOptions{})
		if err != nil {
			t.Fatal(err)
		}
		w, err := store.NewWriter(tsdb.WriterOptions{Journal: tsdb.JournalOptions{Dir: filepath.Join(t.TempDir(), "journal")}})
		if err != nil {
			t.Fatal(err)
		}
		ip := tsdb.NewEntity("10.0.0.1", "x")
		repo := s.For(store, acme)
		for name, add := range adders(r, repo, w) {
			if !adds(name, mode) {
				instead := map[rollup.Mode]string{rollup.Once: "want Add or AddMany", rollup.ByStream: "want Add, AddFunc or AddMany", rollup.ByMessage: "want AddMessage"}[mode]
				if err := add(t.Context(), ip, start, view{}); !errors.Is(err, rollupadd.ErrMode) || !errors.Is(err, tsdb.ErrRejected) || !strings.Contains(err.Error(), instead) {
					t.Errorf("%s on a rollup that is %v: %v, want ErrMode and %q", name, mode, err, instead)
				}
				continue
			}
			conn.Reset()
			for _, tt := range []struct {
				what string
				e    tsdb.Entity
				at   time.Time
				v    view
				want error
			}{
				{"too late", ip, start.Add(-41 * 24 * time.Hour), view{}, tsdb.ErrLate},
				{"too early", ip, start.Add(2 * time.Hour), view{}, tsdb.ErrTooFarAhead},
				{"after the year 9999", ip, time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC), view{}, tsdb.ErrInvalid},
				{"in milliseconds read as seconds", ip, time.Unix(1767225600000, 0), view{}, tsdb.ErrInvalid},
				{"expired", ip, start.Add(-31 * 24 * time.Hour), view{}, tsdb.ErrExpired},
				{"in a bucket that has expired", ip, start.Add(-30*24*time.Hour - 1), view{}, tsdb.ErrExpired},
				{"too large", ip, start, view{Cents: 1000.01}, tsdb.ErrInvalid},
				{"too small", ip, start, view{Cents: -1001}, tsdb.ErrInvalid},
				{"not a number", ip, start, view{Cents: math.NaN()}, tsdb.ErrInvalid},
				{"infinite", ip, start, view{Cents: math.Inf(1)}, tsdb.ErrInvalid},
				{"of too few parts", tsdb.NewEntity("10.0.0.1"), start, view{}, tsdb.ErrInvalid},
				{"of nobody", tsdb.Entity{}, start, view{}, tsdb.ErrInvalid},
			} {
				if err := add(t.Context(), tt.e, tt.at, tt.v); !errors.Is(err, tt.want) || !errors.Is(err, tsdb.ErrRejected) {
					t.Errorf("%s, an event %s: %v, want %v", name, tt.what, err, tt.want)
				}
			}
			if err := add(tenant.NewContext(t.Context(), acme2), ip, start, view{}); !errors.Is(err, tsdb.ErrTenantMismatch) {
				t.Errorf("%s for another tenant: %v, want ErrTenantMismatch", name, err)
			}
			if n := len(conn.Counts().Calls); n > 0 {
				t.Errorf("%s: invalid events sent requests: %v", name, conn.Counts().Calls)
			}
			if err := errors.Join(add(t.Context(), ip, start, view{Cents: 1000}), w.Flush(t.Context())); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		for name, add := range adders(other, repo, w) {
			if err := add(t.Context(), ip, start, view{}); adds(name, mode) && !errors.Is(err, tsdb.ErrInvalid) {
				t.Errorf("%s to a rollup without a schema: %v, want ErrInvalid", name, err)
			}
		}
		for name, add := range adders(r, nil, w) {
			if err := add(t.Context(), ip, start, view{}); adds(name, mode) && !errors.Is(err, tsdb.ErrInvalid) {
				t.Errorf("%s without a repository: %v, want ErrInvalid", name, err)
			}
		}
		for name, add := range adders(nil, repo, w) {
			if err := add(t.Context(), ip, start, view{}); !errors.Is(err, tsdb.ErrInvalid) {
				t.Errorf("%s without a rollup: %v, want ErrInvalid", name, err)
			}
		}
		for _, bad := range []*tsdb.Writer{nil, plain} {
			if err := rollup.NewAdder(r, repo, bad).Add(t.Context(), ip, start, view{}); mode == rollup.ByStream && !errors.Is(err, tsdb.ErrInvalid) {
				t.Errorf("a stream through a writer without a journal: %v, want ErrInvalid", err)
			}
		}
		if mode == rollup.ByMessage {
			for _, id := range []string{"", string(make([]byte, 129))} {
				if _, err := rollup.NewAdder(r, repo, nil).AddMessage(t.Context(), id, ip, start, view{}); !errors.Is(err, tsdb.ErrInvalid) {
					t.Errorf("a message ID of %d bytes: %v", len(id), err)
				}
			}
		}
		if err := errors.Join(plain.Close(t.Context()), w.Close(t.Context())); err != nil {
			t.Error(err)
		}
	}
}

// TestAddWholeNumbers: measures that return whole numbers, and counters, count events as other measures do.
func TestAddWholeNumbers(t *testing.T) {
	measure := rollup.Measure[view]{Name: "cents", Decimals: 1, Max: 100, Int: func(v view) (int64, bool) { return int64(v.Cents), v.Cents != 0 }}
	counter := measure
	counter.Name, counter.Kind, counter.Aggregates = "counter", window.Counter, window.Count|window.Max
	r := rollup.MustDefine("hour", window.Every(time.Hour), []rollup.Measure[view]{measure, counter}, rollup.Options{Mode: rollup.Once})
	s := tsdb.MustDefine("views", tsdb.Key("ip"), codec.JSON[view](), tsdb.SchemaOptions{Rollups: []tsdb.Rollup{r}})
	store, _, _ := tsdbtest.OpenTable(t, tsdbtest.Options{}, s)
	in, ip := rollup.NewAdder(r, s.For(store, acme), nil), tsdb.NewEntity("10.0.0.1")
	for _, cents := range []float64{1000, 0, 15} {
		if err := in.Add(t.Context(), ip, start, view{Cents: cents}); err != nil {
			t.Errorf("an event of %v: %v", cents, err)
		}
	}
	for _, cents := range []float64{1001, -1001, -1} { // in units of 0.1; a counter has no negative numbers
		if err := in.Add(t.Context(), ip, start, view{Cents: cents}); !errors.Is(err, tsdb.ErrInvalid) || !errors.Is(err, tsdb.ErrRejected) {
			t.Errorf("an event of %v: %v, want ErrInvalid", cents, err)
		}
	}
	total, err := rollup.For(r, s.For(store, acme)).Total(t.Context(), ip, tsdb.AllTime())
	if err != nil || total.Points != 3 || total.Values[0].Count != 2 || total.Values[0].Sum != 101.5 || total.Values[1].Max != 100 {
		t.Errorf("the events have the sum %+v, %v; want 3 events, 2 numbers and the sum 101.5", total, err)
	}
}

// TestAddStaysWithItsTenant: an event of a tenant is only in its own rows, even if another tenant's name begins with
// the same letters.
func TestAddStaysWithItsTenant(t *testing.T) {
	for _, mode := range []rollup.Mode{rollup.Once, rollup.ByStream, rollup.ByMessage} {
		a := newAds(t, rollup.Options{Mode: mode}, tsdb.SchemaOptions{Salts: 3})
		w := a.writer(filepath.Join(t.TempDir(), "journal"))
		n := int64(0)
		for name, add := range adders(a.rollup, a.repo, w) {
			if !adds(name, mode) {
				continue
			}
			for _, part := range []string{"x", "x#y", "x%", "\x00"} {
				n++
				if err := add(t.Context(), tsdb.NewEntity(part, "2"), start, view{}); err != nil {
					t.Fatalf("%s: %v", name, err)
				}
			}
		}
		if err := w.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		got := int64(0)
		for _, part := range []string{"x", "x#y", "x%", "\x00"} {
			b, err := rollup.For(a.rollup, a.repo).Total(t.Context(), tsdb.NewEntity(part, "2"), tsdb.Between(start.Add(-time.Hour), start.Add(time.Hour)))
			if err != nil {
				t.Fatal(err)
			}
			got += int64(b.Points)
			b, err = rollup.For(a.rollup, a.schema.For(a.store, acme2)).Total(t.Context(), tsdb.NewEntity(part, "2"), tsdb.Between(start.Add(-time.Hour), start.Add(time.Hour)))
			if err != nil || b.Points != 0 {
				t.Errorf("%v: the other tenant has %d events, want 0 (error %v)", mode, b.Points, err)
			}
		}
		if got != n {
			t.Errorf("%v: the reader returns %d of %d events", mode, got, n)
		}
		err := a.table.ReadRows(t.Context(), bigtable.InfiniteRange(""), func(row bigtable.Row) bool {
			if k := row.Key(); k[0] != '!' && k[:len("acme#views!rollup.hour#")] != "acme#views!rollup.hour#" {
				t.Errorf("%v: the table has the foreign row %q", mode, k)
			}
			return true
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestTooManyStreams: a full row refuses an event of a new stream, which becomes a dead letter. Known streams continue.
func TestTooManyStreams(t *testing.T) {
	a := newAds(t, rollup.Options{Mode: rollup.ByStream}, tsdb.SchemaOptions{})
	old, late := a.writer(filepath.Join(t.TempDir(), "old")), a.writer(filepath.Join(t.TempDir(), "new"))
	ev := tsdb.Point[view]{Entity: tsdb.NewEntity("10.0.0.1", "x"), Time: start, Value: view{Cents: 1}}
	add := func(w *tsdb.Writer) {
		t.Helper()
		if err := rollup.NewAdder(a.rollup, a.repo, w).Add(t.Context(), ev.Entity, ev.Time, ev.Value); err != nil {
			t.Fatal(err)
		}
		if err := w.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	add(old)
	a.count(ev)
	var key string
	cells, _ := a.stored()
	for k := range cells {
		key = k[:len("acme#views!rollup.hour#10.0.0.1#x#0000000000000000000")]
	}
	m := bigtable.NewMutation()
	for i := range 999 {
		m.Set("keep.c", fmt.Sprintf("h:%032x", i), 1000, fmt.Appendf(nil, "%020d", i))
	}
	if err := a.table.Apply(t.Context(), key, m); err != nil {
		t.Fatal(err)
	}
	add(late)
	if st := late.Stats().Journal; st.DeadLetters != 1 || st.Points != 0 {
		t.Errorf("the journal of the new stream holds %+v", st)
	}
	add(old)
	a.count(ev)
	if st := old.Stats().Journal; st.DeadLetters != 0 {
		t.Errorf("the journal of the old stream holds %+v", st)
	}
	a.check("full")
	ev.Time = ev.Time.Add(24 * time.Hour) // another row, because a row covers a day
	add(late)
	a.count(ev)
	if st := late.Stats().Journal; st.DeadLetters != 1 || st.Points != 0 {
		t.Errorf("a day later the journal of the new stream holds %+v", st)
	}
	a.check("a day later")
}

// TestSpansByStream: a ByStream row covers at most a day or one bucket, unless the options set another Span. Ensure
// refuses a table with longer rows until the options have their Span.
func TestSpansByStream(t *testing.T) {
	const day = 24 * time.Hour
	for _, tc := range []struct {
		grid window.Grid
		want time.Duration
	}{
		{window.Every(time.Second), time.Hour / 2},
		{window.Every(2 * time.Second), time.Hour},
		{window.Every(time.Minute), day},
		{window.Every(time.Hour), day},
		{window.Every(7 * time.Hour), 28 * time.Hour},
		{window.Days(1), day},
		{window.Days(1).In(berlin), day},
		{window.Weeks(1, time.Monday), 7 * day},
	} {
		r := rollup.MustDefine[view]("r", tc.grid, nil, rollup.Options{Mode: rollup.ByStream})
		described := inside.Held(r).Entry
		if got := time.Duration(described.Span) * time.Millisecond; got != tc.want {
			t.Errorf("a row of buckets of %v holds %v, want %v", tc.grid, got, tc.want)
		}
	}
	old := newAds(t, rollup.Options{Mode: rollup.ByStream, Span: 30 * day}, tsdb.SchemaOptions{})
	err := old.store.Ensure(t.Context(), newAds(t, rollup.Options{Mode: rollup.ByStream}, tsdb.SchemaOptions{}).schema)
	if !errors.Is(err, tenancy.ErrSchemaConflict) || !strings.Contains(err.Error(), "span of a row") {
		t.Errorf("Ensure with the default span of a table whose rows hold 30 days: %v, want a conflict about the span", err)
	}
}

// TestRefusedEventIsOnDiskBeforeLaterOnes: a refused event becomes a dead letter before later events of its row are
// sent. Otherwise, after a crash between the two, the event would count as added.
func TestRefusedEventIsOnDiskBeforeLaterOnes(t *testing.T) {
	r := rollup.MustDefine("hour", window.Every(time.Hour), viewMeasures, rollup.Options{Mode: rollup.ByStream})
	s := tsdb.MustDefine("views", tsdb.Key("ip", "ad"), codec.JSON[view](), tsdb.SchemaOptions{Rollups: []tsdb.Rollup{r}})
	var w *tsdb.Writer
	calls, early := 0, 0
	hook := func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoker grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		if w == nil || method != "/google.bigtable.v2.Bigtable/CheckAndMutateRow" {
			return invoker(ctx, method, req, reply, cc, opts...)
		}
		if calls++; calls%2 == 1 {
			time.Sleep(10 * time.Millisecond) // waits for the other requests
			return status.Error(codes.InvalidArgument, "refused")
		}
		if w.Stats().Journal.DeadLetters != calls/2 {
			early++
		}
		return invoker(ctx, method, req, reply, cc, opts...)
	}
	store, _, _ := tsdbtest.OpenTable(t, tsdbtest.Options{DialOptions: []grpc.DialOption{grpc.WithChainUnaryInterceptor(hook)}}, s)
	var err error
	if w, err = store.NewWriter(tsdb.WriterOptions{Linger: -1, Journal: tsdb.JournalOptions{Dir: filepath.Join(t.TempDir(), "journal")}}); err != nil {
		t.Fatal(err)
	}
	in := rollup.NewAdder(r, s.For(store, acme), w)
	for range 10 {
		for range 2 {
			if err := in.Add(t.Context(), tsdb.NewEntity("10.0.0.1", "x"), start, view{}); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if early > 0 || calls != 20 {
		t.Errorf("%d of %d requests were sent before the refused event was on disk", early, calls)
	}
	if err := w.Close(t.Context()); err != nil {
		t.Error(err)
	}
}
