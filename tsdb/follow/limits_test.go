package follow_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tenant/limit"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/follow"
)

// TestLimitsOfTenants: a follower's window counts as a range.
func TestLimitsOfTenants(t *testing.T) {
	limiter := must(limit.New(limit.Table{Defaults: limit.Limits{RangeLength: time.Hour}}, limit.Options{}))
	bubbleWith(t, tsdb.SchemaOptions{}, tsdb.StoreOptions{Limits: limiter}, func(w *world) {
		if _, err := follow.Under(w.Context(), w.a, berlin, follow.Options{Lateness: 2 * time.Hour}); !errors.Is(err, limit.ErrExceeded) {
			t.Errorf("%v, want the limit on ranges", err)
		}
		w.under(follow.Options{})
	})
}

// TestNumberOfFollowers is bounded for each tenant, and a closed one makes room.
func TestNumberOfFollowers(t *testing.T) {
	bubble(t, tsdb.SchemaOptions{}, func(w *world) {
		var last *follow.Follower[int64]
		for range 100 {
			last = w.under(follow.Options{})
		}
		_, err := follow.Under(w.Context(), w.a, berlin, follow.Options{})
		if over, ok := errors.AsType[*limit.Error](err); !ok || over.ID != limit.Followers || over.Tenant != acme || over.RetryAfter <= 0 {
			t.Errorf("%v, want the limit on followers of acme", err)
		}
		other := must(follow.Under(w.Context(), w.schema.For(w.own, tenant.MustParse("acme2")), berlin, follow.Options{}))
		w.ok(other.Close())
		w.ok(last.Close())
		w.ok(last.Close())
		w.under(follow.Options{})
	})
}

// TestEnds: a loop ends with its context, with its follower and with the store, and may be followed by another.
func TestEnds(t *testing.T) {
	bubble(t, tsdb.SchemaOptions{}, func(w *world) {
		f := w.under(follow.Options{})
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
		f = w.under(follow.Options{})
		ends(tsdb.ErrClosed, func() { _ = w.own.Close() })
		if _, err := follow.Under(w.Context(), w.a, berlin, follow.Options{}); !errors.Is(err, tsdb.ErrClosed) {
			t.Errorf("%v, want ErrClosed", err)
		}
	})
}

// TestOneLoopAtATime: a second loop is refused, and does not disturb the first.
func TestOneLoopAtATime(t *testing.T) {
	bubble(t, tsdb.SchemaOptions{}, func(w *world) {
		f := w.under(follow.Options{})
		w.put(w.a, roof, 0, 1)
		w.put(w.a, roof, time.Second, 2)
		for _, err := range f.Points(w.Context()) {
			w.ok(err)
			for _, err := range f.Points(w.Context()) {
				if !errors.Is(err, follow.ErrInvalid) {
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
	bubble(t, tsdb.SchemaOptions{}, func(w *world) {
		for field, open := range map[string]func() error{
			"Interval": func() error {
				return second(follow.Under(w.Context(), w.a, berlin, follow.Options{Interval: time.Millisecond}))
			},
			"Lateness": func() error {
				return second(follow.Under(w.Context(), w.a, berlin, follow.Options{Lateness: 25 * time.Hour}))
			},
			"Since": func() error {
				return second(follow.Under(w.Context(), w.a, berlin, follow.Options{Since: w.start, After: "x"}))
			},
			"prefix": func() error { return second(follow.Under(w.Context(), w.a, tsdb.Prefix{}, follow.Options{})) },
			"entity": func() error {
				return second(follow.Entity(w.Context(), w.a, tsdb.NewEntity("berlin"), follow.Options{}))
			},
		} {
			if bad, ok := errors.AsType[*tsdb.InvalidError](open()); !ok || bad.Field != field {
				t.Errorf("%s: %v", field, open())
			}
		}
	})
}

func second[V any](_ V, err error) error { return err }
