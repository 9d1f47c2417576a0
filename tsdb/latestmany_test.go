package tsdb_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/internal/proof/testkit"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// device returns the n-th entity of a site.
func device(site string, n int) tsdb.Entity { return tsdb.NewEntity(site, fmt.Sprintf("d-%d", n)) }

// putAll writes points of any number of entities.
func putAll(t testing.TB, repo *tsdb.Repository[reading], points []tsdb.Point[reading]) {
	t.Helper()
	if _, err := repo.PutMany(context.Background(), points); err != nil {
		t.Fatal(err)
	}
}

// TestLatestManyAnswersEach: results are in the order of the entities; missing, corrupt and refused ones are
// distinguished and do not affect others; each device is read once.
func TestLatestManyAnswersEach(t *testing.T) {
	s := readings(t, tsdb.SchemaOptions{})
	store, conn, table := tsdbtest.OpenTable(t, tsdbtest.Options{}, s)
	repo := s.For(store, acme)
	var points []tsdb.Point[reading]
	for n := range 200 {
		for k := range 3 {
			points = append(points, tsdb.Point[reading]{Entity: device("berlin", n), Time: start.Add(time.Duration(k) * time.Second), Value: reading{float64(10*n + k)}})
		}
	}
	putAll(t, repo, points)
	m := bigtable.NewMutation()
	m.Set("keep", "p:json", bigtable.Time(start.Add(2*time.Second)), []byte("{"))
	apply(t, table, key(device("berlin", 7), start.Add(2*time.Second)), m)
	m = bigtable.NewMutation()
	m.DeleteRow()
	apply(t, table, key(device("berlin", 8), start.Add(2*time.Second)), m)
	m = bigtable.NewMutation()
	m.Set("keep", "p:cbor", bigtable.Time(start), []byte("{"))
	apply(t, table, key(device("berlin", 300), start), m)

	var asked []tsdb.Entity
	for _, n := range []int{199, 3, 7, 250, 3, 8, 300, 0, 250, 7} {
		asked = append(asked, device("berlin", n))
	}
	asked = append(asked, tsdb.NewEntity("berlin"), tsdb.NewEntity("berlin", ""))
	conn.Reset()
	answers, err := latestMany(t.Context(), repo, asked)
	if got := conn.Counts().Calls[tsdbtest.ReadRows]; got != 7 {
		t.Errorf("%d requests, want 7, one for each device", got)
	}
	var report *tsdb.ReadError
	if !errors.As(err, &report) || report.Total != len(asked) || !errors.Is(err, codec.ErrCorrupt) || !errors.Is(err, codec.ErrUnknownTag) || !errors.Is(err, tsdb.ErrInvalid) || errors.Is(err, tsdb.ErrNotFound) {
		t.Fatalf("error %v", err)
	}
	var failed []int
	for _, f := range report.Failed {
		failed = append(failed, f.Index)
		if f.Entity != asked[f.Index] || !errors.Is(f.Err, answers[f.Index].Err) {
			t.Errorf("failure %+v of %v", f, asked[f.Index])
		}
	}
	if want := []int{2, 6, 9, 10, 11}; !slices.Equal(failed, want) {
		t.Errorf("failed: %v, want %v", failed, want)
	}
	for i, want := range []any{1992.0, 32.0, codec.ErrCorrupt, tsdb.ErrNotFound, 32.0, 81.0, codec.ErrUnknownTag, 2.0, tsdb.ErrNotFound, codec.ErrCorrupt, tsdb.ErrInvalid, tsdb.ErrInvalid} {
		a := answers[i]
		if a.Point.Entity != asked[i] {
			t.Errorf("answer %d is of %v, want %v", i, a.Point.Entity, asked[i])
		}
		switch want := want.(type) {
		case error:
			if !errors.Is(a.Err, want) || a.Point.Value != (reading{}) {
				t.Errorf("answer %d: %+v, want %v", i, a, want)
			}
			if _, ok := a.Err.(*tsdb.PointError); ok == a.Point.Time.IsZero() {
				t.Errorf("answer %d: %+v, want the time of exactly those that do not decode", i, a)
			}
		case float64:
			latest, err := repo.Latest(t.Context(), asked[i])
			if a.Err != nil || err != nil || a.Point != latest || a.Point.Value.TempC != want {
				t.Errorf("answer %d: %+v, Latest %v, %v, want %v", i, a, latest, err, want)
			}
		}
	}

	histories, err := repo.LatestMany(t.Context(), asked, 2, tsdb.Concurrency(1))
	if !errors.As(err, &report) || len(report.Failed) != 5 {
		t.Errorf("LatestMany: %v", err)
	}
	for i, h := range histories {
		points, err := repo.LatestN(t.Context(), asked[i], 2)
		if h.Entity != asked[i] || !slices.Equal(h.Points, points) || fmt.Sprint(h.Err) != fmt.Sprint(err) {
			t.Errorf("history %d: %+v, LatestN %v, %v", i, h, points, err)
		}
	}
	histories[1].Points[0].Value.TempC = -1
	if histories[4].Points[0].Value.TempC == -1 {
		t.Error("two results share their points")
	}
	if answers, err := latestMany(t.Context(), repo, []tsdb.Entity{device("x", 1), device("x", 2)}); err != nil || len(answers) != 2 {
		t.Errorf("only missing entities: %v, %v; want no error", answers, err)
	}
	conn.Reset()
	if answers, err := latestMany(t.Context(), repo, nil); err != nil || len(answers) != 0 {
		t.Errorf("LatestMany of no entities: %v, %v", answers, err)
	}
	if histories, err := repo.LatestMany(t.Context(), asked[:2], 0); err != nil || len(histories) != 2 || histories[0].Points != nil {
		t.Errorf("LatestMany of 0 points: %v, %v", histories, err)
	}
	if _, err := repo.LatestMany(t.Context(), []tsdb.Entity{asked[0], {}}, 0); !errors.As(err, &report) || len(report.Failed) != 1 || report.Failed[0].Index != 1 {
		t.Errorf("LatestMany of 0 points of an empty entity: %v, want an error of its index", err)
	}
	if _, err := repo.LatestMany(t.Context(), nil, -1); !errors.Is(err, tsdb.ErrInvalid) {
		t.Errorf("LatestMany of -1 points of no entities: %v, want ErrInvalid", err)
	}
	if calls := conn.Counts().Calls; len(calls) > 0 {
		t.Errorf("requests without anything to read: %v", calls)
	}
}

// TestLatestManyPastDeadHistories: devices whose rows have expired but are not collected cost no more than empty ones.
func TestLatestManyPastDeadHistories(t *testing.T) {
	s := readings(t, tsdb.SchemaOptions{Retention: d90})
	c := testkit.NewClock(start)
	store, conn := tsdbtest.Open(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Clock: c.Now}}, s)
	repo := s.For(store, acme)
	var points []tsdb.Point[reading]
	var devices []tsdb.Entity
	for n := range 50 {
		devices = append(devices, device("berlin", n))
		for k := range 100 {
			points = append(points, tsdb.Point[reading]{Entity: devices[n], Time: start.Add(-time.Duration(k) * time.Minute)})
		}
	}
	putAll(t, repo, points)
	c.Set(start.Add(365 * 24 * time.Hour))
	putAll(t, repo, []tsdb.Point[reading]{{Entity: devices[3], Time: c.Now()}, {Entity: devices[4], Time: c.Now()}})
	conn.Reset()
	answers, err := latestMany(t.Context(), repo, devices)
	if err != nil {
		t.Fatal(err)
	}
	for i, a := range answers {
		if found := a.Err == nil; found != (i == 3 || i == 4) {
			t.Errorf("answer %d: %+v", i, a)
		}
	}
	if n := conn.Counts(); n.Calls[tsdbtest.ReadRows] != 50 || n.RowsSeen != 2 {
		t.Errorf("%d requests saw %d rows, want 50 and 2", n.Calls[tsdbtest.ReadRows], n.RowsSeen)
	}
}

// TestLatestManyOnTheDeadline: finished results are returned, the others have the deadline's error.
func TestLatestManyOnTheDeadline(t *testing.T) {
	longBubble(t, func(t *testing.T) {
		for name, end := range map[string]struct {
			ctx  func() (context.Context, context.CancelFunc)
			want error
		}{
			"deadline": {func() (context.Context, context.CancelFunc) { return context.WithTimeout(t.Context(), time.Second) }, context.DeadlineExceeded},
			"cancel": {func() (context.Context, context.CancelFunc) {
				ctx, cancel := context.WithCancel(t.Context())
				time.AfterFunc(time.Second, cancel)
				return ctx, cancel
			}, context.Canceled},
		} {
			repo, conn, devices := fleet(t, 100, tsdb.Timeouts{})
			conn.Inject(tsdbtest.Delay(time.Hour).On(tsdbtest.ReadRows).Skip(60))
			ctx, cancel := end.ctx()
			begin := time.Now()
			answers, err := latestMany(ctx, repo, devices, tsdb.Concurrency(10), tsdb.Hedge{After: time.Millisecond, MaxRatio: 0.01})
			cancel()
			if took := time.Since(begin); took != time.Second {
				t.Errorf("%s: the call took %v", name, took)
			}
			finished := 0
			for i, a := range answers {
				switch {
				case a.Err == nil && a.Point.Value.TempC == float64(i):
					finished++
				case !errors.Is(a.Err, end.want):
					t.Errorf("%s: answer %d: %+v", name, i, a)
				}
			}
			var report *tsdb.ReadError
			if finished < 59 || finished > 60 || !errors.Is(err, end.want) || !errors.As(err, &report) || len(report.Failed) != 100-finished {
				t.Errorf("%s: %d results, error %v", name, finished, err)
			}
		}
	})
}

// TestLatestManyIsBounded: the timeout of reads bounds each request, the timeout of scans the whole call.
func TestLatestManyIsBounded(t *testing.T) {
	longBubble(t, func(t *testing.T) {
		s := readings(t, tsdb.SchemaOptions{})
		store, conn := tsdbtest.Open(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Timeouts: tsdb.Timeouts{Read: time.Second, Scan: 5 * time.Second}}}, s)
		conn.Inject(tsdbtest.Delay(time.Hour).On(tsdbtest.ReadRows))
		var devices []tsdb.Entity
		for n := range 20 {
			devices = append(devices, device("berlin", n))
		}
		begin := time.Now()
		_, err := latestMany(t.Context(), s.For(store, acme), devices, tsdb.Concurrency(2))
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(begin) != 5*time.Second || conn.Counts().Calls[tsdbtest.ReadRows] != 10 {
			t.Errorf("error %v after %v and %d requests", err, time.Since(begin), conn.Counts().Calls[tsdbtest.ReadRows])
		}
	})
}

// TestLatestManyThroughFaults: one failure does not affect other entities, and a broken stream affects none.
func TestLatestManyThroughFaults(t *testing.T) {
	parallelIfSlow(t)
	bubble(t, func(t *testing.T) {
		for name, tt := range map[string]struct {
			fault  tsdbtest.Fault
			failed int
			want   error
		}{
			"refused":     {tsdbtest.Fail(codes.PermissionDenied).Skip(5).Times(3), 3, nil},
			"unavailable": {tsdbtest.Fail(codes.Unavailable).Times(10), 0, nil},
			"cut":         {tsdbtest.CutStream(0, codes.Unavailable).Times(10), 0, nil},
			"cut behind":  {tsdbtest.CutStream(1, codes.Unavailable).Times(10), 0, nil},
			"lost":        {tsdbtest.LoseResponse(codes.Unavailable).Times(10), 0, nil},
			"no table":    {tsdbtest.Fail(codes.NotFound), 40, tsdb.ErrNoTable},
			"outage":      {tsdbtest.Fail(codes.Unavailable), 40, context.DeadlineExceeded},
		} {
			for _, opts := range [][]tsdb.ReadOption{nil, {tsdb.Hedge{After: 10 * time.Millisecond, MaxRatio: 1}}} {
				repo, conn, devices := fleet(t, 40, tsdb.Timeouts{Read: 2 * time.Second})
				conn.Inject(tt.fault.On(tsdbtest.ReadRows))
				answers, err := latestMany(t.Context(), repo, devices, opts...)
				checkAnswers(t, name, answers, err, tt.failed, tt.want)
			}
		}
	})
}

// checkAnswers checks the result of LatestMany for the devices of fleet, some of which failed. want is the error, or
// nil for any.
func checkAnswers(t *testing.T, name string, answers []latestResult[reading], err error, failed int, want error) {
	t.Helper()
	got := 0
	for i, a := range answers {
		if a.Err != nil {
			got++
		} else if a.Point.Value.TempC != float64(i) {
			t.Errorf("%s: answer %d is %+v", name, i, a)
		}
	}
	if got != failed || (err != nil) != (failed > 0) || want != nil && !errors.Is(err, want) || errors.Is(err, tsdb.ErrNotFound) {
		t.Errorf("%s: %d failed, %v, want %d", name, got, err, failed)
	}
}

// TestWidthBoundsTheRequestsUnderWay counts parallel requests on the connection.
func TestWidthBoundsTheRequestsUnderWay(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := readings(t, tsdb.SchemaOptions{})
		var now, most atomic.Int32
		count := grpc.WithChainStreamInterceptor(func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, streamer grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
			n := now.Add(1)
			defer now.Add(-1)
			for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
			}
			return streamer(ctx, desc, cc, method, opts...)
		})
		store, conn := tsdbtest.Open(t, tsdbtest.Options{DialOptions: []grpc.DialOption{count}}, s)
		conn.Inject(tsdbtest.Delay(5 * time.Millisecond).On(tsdbtest.ReadRows))
		var devices []tsdb.Entity
		for n := range 200 {
			devices = append(devices, device("berlin", n))
		}
		for _, tt := range []struct {
			opts []tsdb.ReadOption
			want int32
		}{{nil, 128}, {[]tsdb.ReadOption{tsdb.Concurrency(0)}, 128}, {[]tsdb.ReadOption{tsdb.Concurrency(1)}, 1}, {[]tsdb.ReadOption{tsdb.Concurrency(7)}, 7}, {[]tsdb.ReadOption{tsdb.Concurrency(1000)}, 200}} {
			most.Store(0)
			if _, err := s.For(store, acme).LatestMany(t.Context(), devices, 2, tt.opts...); err != nil { // always one request per device
				t.Fatal(err)
			}
			if got := most.Load(); got > tt.want || !overTCP() && got != tt.want {
				t.Errorf("%v: %d at once, want %d", tt.opts, got, tt.want)
			}
		}
	})
}

func TestReadOptionsAreChecked(t *testing.T) {
	s := readings(t, tsdb.SchemaOptions{})
	store, conn := tsdbtest.Open(t, tsdbtest.Options{}, s)
	for field, opt := range map[string]tsdb.ReadOption{
		"Concurrency":    tsdb.Concurrency(-1),
		"Hedge.After":    tsdb.Hedge{MaxRatio: 0.1},
		"Hedge.MaxRatio": tsdb.Hedge{After: 1},
		"read option 0":  nil,
	} {
		_, err := latestMany(t.Context(), s.For(store, acme), []tsdb.Entity{roof}, opt)
		var invalid *tsdb.InvalidError
		if !errors.Is(err, tsdb.ErrInvalid) || !errors.As(err, &invalid) || invalid.Field != field {
			t.Errorf("%v: %v, want it to name %s", opt, err, field)
		}
	}
	for _, opt := range []tsdb.ReadOption{tsdb.Concurrency(1001), tsdb.Hedge{After: -1, MaxRatio: 1}, tsdb.Hedge{After: 1, MaxRatio: 1.01}, tsdb.Hedge{After: 1, MaxRatio: -1}} {
		if _, err := latestMany(t.Context(), s.For(store, acme), []tsdb.Entity{roof}, opt); !errors.Is(err, tsdb.ErrInvalid) {
			t.Errorf("%v: %v", opt, err)
		}
	}
	if _, err := s.For(store, acme).LatestMany(t.Context(), []tsdb.Entity{roof}, -1); !errors.Is(err, tsdb.ErrInvalid) {
		t.Errorf("LatestMany of -1 points: %v, want ErrInvalid", err)
	}
	if calls := conn.Counts().Calls; len(calls) > 0 {
		t.Errorf("requests were sent: %v", calls)
	}
}

// latestResult is what LatestMany returns of one entity, as Latest would return it.
type latestResult[T any] struct {
	Point tsdb.Point[T]
	Err   error
}

// latestMany calls LatestMany for one point of each entity.
func latestMany[T any](ctx context.Context, repo *tsdb.Repository[T], entities []tsdb.Entity, opts ...tsdb.ReadOption) ([]latestResult[T], error) {
	histories, err := repo.LatestMany(ctx, entities, 1, opts...)
	if histories == nil {
		return nil, err
	}
	results := make([]latestResult[T], len(histories))
	for i, h := range histories {
		r := latestResult[T]{Point: tsdb.Point[T]{Entity: h.Entity}, Err: h.Err}
		if len(h.Points) > 0 {
			r.Point = h.Points[0]
		} else if h.Err == nil {
			r.Err = tsdb.ErrNotFound
		}
		if bad, ok := h.Err.(tsdb.PointErrors); ok {
			r.Err = bad[0]
		}
		results[i] = r
	}
	return results, err
}
