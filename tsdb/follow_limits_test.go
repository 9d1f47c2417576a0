package tsdb_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tenant/limit"
	"github.com/tidemark-go/tidemark/tsdb"
)

// TestLimitsOfTenants: a follower's window counts as a range.
func TestLimitsOfTenants(t *testing.T) {
	limiter := opened(limit.New(limit.Table{Defaults: limit.Limits{RangeLength: time.Hour}}, limit.Options{}))
	followBubbleWith(t, tsdb.SchemaOptions{}, tsdb.StoreOptions{Limits: limiter}, func(w *world) {
		if _, err := w.a.Under(berlin).Follow(w.Context(), tsdb.FollowOptions{Lateness: 2 * time.Hour}); !errors.Is(err, limit.ErrExceeded) {
			t.Errorf("%v, want the limit on ranges", err)
		}
		w.under(tsdb.FollowOptions{})
	})
}

// TestNumberOfFollowers is bounded for each tenant, and a closed one makes room.
func TestNumberOfFollowers(t *testing.T) {
	followBubble(t, tsdb.SchemaOptions{}, func(w *world) {
		var last *tsdb.Follower[int64]
		for range 100 {
			last = w.under(tsdb.FollowOptions{})
		}
		_, err := w.a.Under(berlin).Follow(w.Context(), tsdb.FollowOptions{})
		if over, ok := errors.AsType[*limit.Error](err); !ok || over.ID != limit.Followers || over.Tenant != acme || over.RetryAfter <= 0 {
			t.Errorf("%v, want the limit on followers of acme", err)
		}
		other := opened(w.schema.For(w.own, tenant.MustParse("acme2")).Under(berlin).Follow(w.Context(), tsdb.FollowOptions{}))
		w.ok(other.Close())
		w.ok(last.Close())
		w.ok(last.Close())
		w.under(tsdb.FollowOptions{})
	})
}

// TestEnds: a loop ends with its context, with its follower and with the store, and may be followed by another.
func TestEnds(t *testing.T) {
	followBubble(t, tsdb.SchemaOptions{}, func(w *world) {
		f := w.under(tsdb.FollowOptions{})
		ends := func(want error, when func()) {
			t.Helper()
			go func() {
				time.Sleep(time.Minute)
				when()
			}()
			ctx, cancel := context.WithTimeout(w.Context(), time.Hour)
			defer cancel()
			var last error
			for _, last = range f.Points(ctx) { //nolint:revive // the loop keeps the last error
			}
			if !errors.Is(last, want) {
				t.Errorf("%v, want %v", last, want)
			}
		}
		ends(context.DeadlineExceeded, func() {})
		ends(tsdb.ErrClosed, func() { _ = f.Close() })
		f = w.under(tsdb.FollowOptions{})
		ends(tsdb.ErrClosed, func() { _ = w.own.Close() })
		if _, err := w.a.Under(berlin).Follow(w.Context(), tsdb.FollowOptions{}); !errors.Is(err, tsdb.ErrClosed) {
			t.Errorf("%v, want ErrClosed", err)
		}
	})
}

// TestOneLoopAtATime: a second loop is refused, and does not disturb the first.
func TestOneLoopAtATime(t *testing.T) {
	followBubble(t, tsdb.SchemaOptions{}, func(w *world) {
		f := w.under(tsdb.FollowOptions{})
		w.put(w.a, roof, 0, 1)
		w.put(w.a, roof, time.Second, 2)
		for _, err := range f.Points(w.Context()) {
			w.ok(err)
			for _, err := range f.Points(w.Context()) {
				if !errors.Is(err, tsdb.ErrInvalid) {
					t.Errorf("%v, want ErrInvalid", err)
				}
			}
			break
		}
		w.want(f, soon, 2)
	})
}

// TestWrongOptions are refused by name.
func TestWrongOptions(t *testing.T) {
	followBubble(t, tsdb.SchemaOptions{}, func(w *world) {
		for field, open := range map[string]func() error{
			"Interval": func() error {
				return second(w.a.Under(berlin).Follow(w.Context(), tsdb.FollowOptions{Interval: time.Millisecond}))
			},
			"Lateness": func() error {
				return second(w.a.Under(berlin).Follow(w.Context(), tsdb.FollowOptions{Lateness: 25 * time.Hour}))
			},
			"Since": func() error {
				return second(w.a.Under(berlin).Follow(w.Context(), tsdb.FollowOptions{Since: w.start, After: "x"}))
			},
			"prefix": func() error { return second(w.a.Under(tsdb.Prefix{}).Follow(w.Context(), tsdb.FollowOptions{})) },
			"entity": func() error {
				return second(w.a.Follow(w.Context(), tsdb.NewEntity("berlin"), tsdb.FollowOptions{}))
			},
		} {
			if bad, ok := errors.AsType[*tsdb.InvalidError](open()); !ok || bad.Field != field {
				t.Errorf("%s: %v", field, open())
			}
		}
	})
}
