package tsdb_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/tidemark-go/tidemark/internal/proof/testkit"
	"github.com/tidemark-go/tidemark/internal/store/tenancy"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// fleet returns a repository with n devices that have one point each.
func fleet(t *testing.T, n int, timeouts tsdb.Timeouts) (*tsdb.Repository[reading], *tsdbtest.Conn, []tsdb.Entity) {
	t.Helper()
	s := readings(t, tsdb.SchemaOptions{})
	store, conn := tsdbtest.Open(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Timeouts: timeouts}}, s)
	devices := make([]tsdb.Entity, n)
	points := make([]tsdb.Point[reading], n)
	for i := range devices {
		devices[i] = device("berlin", i)
		points[i] = tsdb.Point[reading]{Entity: devices[i], Time: start, Value: reading{float64(i)}}
	}
	putAll(t, s.For(store, acme), points)
	conn.Reset()
	return s.For(store, acme), conn, devices
}

// TestHedgeTakesTheTailOff: the second request answers a read whose first request hangs, and the first is cancelled.
func TestHedgeTakesTheTailOff(t *testing.T) {
	longBubble(t, func(t *testing.T) {
		repo, conn, devices := fleet(t, 100, tsdb.Timeouts{Read: time.Hour, Scan: time.Hour})
		conn.Inject(tsdbtest.Delay(time.Minute).On(tsdbtest.ReadRows).Skip(50).Times(2))
		begin := time.Now()
		answers, err := latestMany(t.Context(), repo, devices, tsdb.Hedge{After: 10 * time.Millisecond, MaxRatio: 0.05})
		if err != nil || time.Since(begin) != 10*time.Millisecond {
			t.Errorf("error %v after %v, want results after 10ms", err, time.Since(begin))
		}
		for i, a := range answers {
			if a.Err != nil || a.Point.Value.TempC != float64(i) {
				t.Errorf("answer %d: %+v", i, a)
			}
		}
		if n := conn.Counts().Calls[tsdbtest.ReadRows]; n != 102 {
			t.Errorf("%d requests, want one for each device and 2 more", n)
		}
		synctest.Wait() // no goroutine is left: the bubble would not end
	})
}

// TestHedgesAreCapped: if the whole service is slow, hedges stay within their share, also over several calls.
func TestHedgesAreCapped(t *testing.T) {
	testkit.Plain(t)
	longBubble(t, func(t *testing.T) {
		repo, conn, devices := fleet(t, 100, tsdb.Timeouts{})
		conn.Inject(tsdbtest.Delay(time.Second).On(tsdbtest.ReadRows))
		hedge := tsdb.Hedge{After: 10 * time.Millisecond, MaxRatio: 0.05}
		begin := time.Now()
		for range 4 {
			if _, err := repo.LatestMany(t.Context(), devices, 2, hedge); err != nil { // one request per device
				t.Fatal(err)
			}
		}
		for _, d := range devices { // each single read earns a twentieth of a request
			if _, err := latestMany(t.Context(), repo, []tsdb.Entity{d}, hedge); err != nil {
				t.Fatal(err)
			}
		}
		marks := int(time.Since(begin) / (tenancy.ErasedWithin / 2)) // read in the background
		if n := conn.Counts().Calls[tsdbtest.ReadRows]; n < 520 || n > 525+marks {
			t.Errorf("%d requests for 500 reads, want at most a twentieth more", n)
		}
		conn.Clear()
		for range 100 { // the budget saved in healthy times is bounded
			if _, err := repo.LatestMany(t.Context(), devices, 2, hedge); err != nil { // one request per device
				t.Fatal(err)
			}
		}
		conn.Reset()
		conn.Inject(tsdbtest.Delay(time.Second).On(tsdbtest.ReadRows))
		for range 10 {
			if _, err := repo.LatestMany(t.Context(), devices, 2, hedge); err != nil { // one request per device
				t.Fatal(err)
			}
		}
		if n := conn.Counts().Calls[tsdbtest.ReadRows]; n > 1150 {
			t.Errorf("%d requests for 1000 reads, want at most 150 more", n)
		}
	})
}

// TestHedgeThatFails: the first successful response counts, whichever request it answers.
func TestHedgeThatFails(t *testing.T) {
	longBubble(t, func(t *testing.T) {
		repo, conn, devices := fleet(t, 1, tsdb.Timeouts{})
		hedge := tsdb.Hedge{After: 10 * time.Millisecond, MaxRatio: 1}
		conn.Inject(tsdbtest.Delay(time.Second).On(tsdbtest.ReadRows).Times(1))
		conn.Inject(tsdbtest.Fail(codes.PermissionDenied).On(tsdbtest.ReadRows).Skip(1))
		if answers, err := latestMany(t.Context(), repo, devices, hedge); err != nil || answers[0].Err != nil {
			t.Errorf("the second request is refused: got %v, %v; want the first response", answers, err)
		}
		conn.Clear()
		conn.Inject(tsdbtest.Fail(codes.PermissionDenied).On(tsdbtest.ReadRows))
		conn.Reset()
		if _, err := latestMany(t.Context(), repo, devices, hedge); err == nil || conn.Counts().Calls[tsdbtest.ReadRows] != 1 {
			t.Errorf("refused at once: error %v after %d requests, want one request", err, conn.Counts().Calls[tsdbtest.ReadRows])
		}
		conn.Clear()
		conn.Inject(tsdbtest.Delay(time.Hour).On(tsdbtest.ReadRows))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := latestMany(ctx, repo, devices, hedge); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("both requests hang: %v, want DeadlineExceeded", err)
		}
	})
}

// TestReadsOfOneEntityAreHedged: each call that makes one request uses the response of a second one if the first hangs.
func TestReadsOfOneEntityAreHedged(t *testing.T) {
	for name, read := range map[string]func(context.Context, *tsdb.Repository[reading], tsdb.Entity, tsdb.Hedge) error{
		"Get": func(ctx context.Context, r *tsdb.Repository[reading], e tsdb.Entity, h tsdb.Hedge) error {
			return second(r.Get(ctx, e, start, h))
		},
		"Latest": func(ctx context.Context, r *tsdb.Repository[reading], e tsdb.Entity, h tsdb.Hedge) error {
			return second(r.Latest(ctx, e, h))
		},
		"AsOf": func(ctx context.Context, r *tsdb.Repository[reading], e tsdb.Entity, h tsdb.Hedge) error {
			return second(r.AsOf(ctx, e, start, h))
		},
		"LatestN": func(ctx context.Context, r *tsdb.Repository[reading], e tsdb.Entity, h tsdb.Hedge) error {
			points, err := r.LatestN(ctx, e, 5, h)
			if err == nil && len(points) != 1 {
				return errors.New("not one point")
			}
			return err
		},
		"LatestFields": func(ctx context.Context, r *tsdb.Repository[reading], e tsdb.Entity, h tsdb.Hedge) error {
			return second(r.LatestFields(ctx, e, tsdb.FieldOptions{}, h))
		},
		"LatestFieldsMany": func(ctx context.Context, r *tsdb.Repository[reading], e tsdb.Entity, h tsdb.Hedge) error {
			return second(r.LatestFieldsMany(ctx, []tsdb.Entity{e}, tsdb.FieldOptions{}, h))
		},
	} {
		t.Run(name, func(t *testing.T) {
			longBubble(t, func(t *testing.T) {
				repo, conn, devices := fleet(t, 1, tsdb.Timeouts{Read: time.Hour})
				conn.Inject(tsdbtest.Delay(time.Minute).On(tsdbtest.ReadRows).Times(1))
				begin := time.Now()
				if err := read(t.Context(), repo, devices[0], tsdb.Hedge{After: 10 * time.Millisecond, MaxRatio: 1}); err != nil || time.Since(begin) != 10*time.Millisecond {
					t.Errorf("error %v after %v, want a result after 10ms", err, time.Since(begin))
				}
				if n := conn.Counts().Calls[tsdbtest.ReadRows]; n != 2 {
					t.Errorf("%d requests, want 2", n)
				}
				synctest.Wait()
			})
		})
	}
}

// TestReadsRefuseOptionsThatTheyCannotFollow: a read rejects an Order or a Limit that it cannot apply, and accepts all
// other options.
func TestReadsRefuseOptionsThatTheyCannotFollow(t *testing.T) {
	repo, conn, devices := fleet(t, 1, tsdb.Timeouts{})
	e, all := devices[0], tsdb.AllEntities()
	under := func(opts []tsdb.ReadOption) error {
		for _, err := range repo.Under(all).Latest(t.Context(), opts...) {
			return err
		}
		return nil
	}
	entities := func(opts []tsdb.ReadOption) error {
		for _, err := range repo.Under(all).Entities(t.Context(), tsdb.AllTime(), opts...) {
			return err
		}
		return nil
	}
	ranged := func(opts []tsdb.ReadOption) error {
		for _, err := range repo.Range(t.Context(), e, tsdb.AllTime(), opts...) {
			return err
		}
		return nil
	}
	ctx := t.Context()
	for name, tt := range map[string]struct {
		read         func([]tsdb.ReadOption) error
		order, limit bool
	}{
		"Get":                   {func(o []tsdb.ReadOption) error { return second(repo.Get(ctx, e, start, o...)) }, false, false},
		"Latest":                {func(o []tsdb.ReadOption) error { return second(repo.Latest(ctx, e, o...)) }, false, false},
		"AsOf":                  {func(o []tsdb.ReadOption) error { return second(repo.AsOf(ctx, e, start, o...)) }, false, false},
		"LatestN":               {func(o []tsdb.ReadOption) error { return second(repo.LatestN(ctx, e, 1, o...)) }, false, false},
		"LatestMany":            {func(o []tsdb.ReadOption) error { return second(latestMany(ctx, repo, devices, o...)) }, false, false},
		"LatestMany of several": {func(o []tsdb.ReadOption) error { return second(repo.LatestMany(ctx, devices, 2, o...)) }, false, false},
		"Under.Latest":          {under, false, false},
		"Entities":              {entities, false, false},
		"Under.PageLatest":      {func(o []tsdb.ReadOption) error { return second(repo.Under(all).PageLatest(ctx, 1, "", o...)) }, false, false},
		"Under.PageEntities":    {func(o []tsdb.ReadOption) error { return second(repo.Under(all).PageEntities(ctx, 1, "", o...)) }, false, false},
		"Range":                 {ranged, true, true},
		"Page":                  {func(o []tsdb.ReadOption) error { return second(repo.Page(ctx, e, tsdb.AllTime(), 1, "", o...)) }, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			if err := tt.read([]tsdb.ReadOption{tsdb.Concurrency(2), tsdb.Hedge{After: time.Hour, MaxRatio: 1}, tsdb.MaxStale(time.Second)}); err != nil {
				t.Errorf("options that every read accepts: %v", err)
			}
			for opt, takes := range map[tsdb.ReadOption]bool{tsdb.OldestFirst: tt.order, tsdb.NewestFirst: tt.order, tsdb.Limit(5): tt.limit} {
				conn.Reset()
				err := tt.read([]tsdb.ReadOption{opt})
				if refused := errors.Is(err, tsdb.ErrInvalid); refused == takes || takes && err != nil {
					t.Errorf("%T(%v): %v, want it accepted: %t", opt, opt, err, takes)
				}
				if calls := conn.Counts().Calls; !takes && len(calls) > 0 {
					t.Errorf("%T(%v): requests were sent: %v", opt, opt, calls)
				}
			}
		})
	}
}

// TestHedgesTakeAMissingPointForAnAnswer: a response without a point is a result; the call does not wait for the other
// request.
func TestHedgesTakeAMissingPointForAnAnswer(t *testing.T) {
	hedge := tsdb.Hedge{After: 10 * time.Millisecond, MaxRatio: 1}
	for name, read := range map[string]func(*testing.T, *tsdb.Repository[reading], tsdb.Entity) error{
		"Get": func(t *testing.T, r *tsdb.Repository[reading], e tsdb.Entity) error {
			_, err := r.Get(t.Context(), e, start.Add(time.Hour), hedge)
			return err
		},
		"Latest": func(t *testing.T, r *tsdb.Repository[reading], _ tsdb.Entity) error {
			_, err := r.Latest(t.Context(), device("berlin", 77), hedge)
			return err
		},
		"AsOf": func(t *testing.T, r *tsdb.Repository[reading], e tsdb.Entity) error {
			_, err := r.AsOf(t.Context(), e, start.Add(-time.Hour), hedge)
			return err
		},
	} {
		for what, skip := range map[string]int{"first hangs": 0, "second hangs": 1} {
			longBubble(t, func(t *testing.T) {
				repo, conn, devices := fleet(t, 1, tsdb.Timeouts{})
				if skip == 1 {
					conn.Inject(tsdbtest.Delay(20 * time.Millisecond).On(tsdbtest.ReadRows).Times(1))
				}
				conn.Inject(tsdbtest.Delay(time.Minute).On(tsdbtest.ReadRows).Skip(skip).Times(1))
				begin := time.Now()
				err := read(t, repo, devices[0])
				if took := time.Since(begin); !errors.Is(err, tsdb.ErrNotFound) || took > 30*time.Millisecond {
					t.Errorf("%s, %s: %v after %v, want ErrNotFound after 10 to 20ms", name, what, err, took)
				}
			})
		}
	}
}
