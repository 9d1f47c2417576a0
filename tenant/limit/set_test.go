package limit_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/internal/gate"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tenant/limit"
)

// TestSetOfOthers: a tenant that makes no call has the limits that were set for it from then on, also if something that
// does not concern it is set later.
func TestSetOfOthers(t *testing.T) {
	at := func(l limit.Limits) limit.Table {
		return limit.Table{Defaults: l, Overrides: map[tenant.ID]limit.Limits{other: {PointsPerSecond: 5}}}
	}
	slow, fast := limit.Limits{PointsPerSecond: 1, PointsBurst: 100}, limit.Limits{PointsPerSecond: 50, PointsBurst: 1000}
	for name, later := range map[string]func(l *limit.Limiter) error{
		"nothing":            func(*limit.Limiter) error { return nil },
		"the same":           func(l *limit.Limiter) error { return l.Set(at(fast)) },
		"another's override": func(l *limit.Limiter) error { return l.Set(limit.Table{Defaults: fast}) },
		"another's profile":  func(l *limit.Limiter) error { return gate.Of(l).SetProfile(other, []byte(`{"entities": 3}`)) },
	} {
		for _, own := range []bool{false, true} {
			l, c := open(t, at(slow))
			change := func(to limit.Limits) error { return l.Set(at(to)) }
			if own {
				change = func(to limit.Limits) error {
					return gate.Of(l).SetProfile(acme, fmt.Appendf(nil, `{"points_per_second": %d, "points_burst": %d}`, to.PointsPerSecond, to.PointsBurst))
				}
			}
			_, _ = put(l, acme, 200)
			c.advance(10 * time.Second)
			if err := change(fast); err != nil {
				t.Fatal(err)
			}
			c.advance(10 * time.Second)
			if err := later(l); err != nil {
				t.Fatal(err)
			}
			c.advance(time.Second)
			if got, _ := put(l, acme, 1000); got != 10+550 {
				t.Errorf("%s, by a profile %v: %d points accepted, want 560", name, own, got)
			}
		}
	}
}

// TestSetOfAnOverride: an override applies from the time at which it is set, changed or removed, also without calls in
// between.
func TestSetOfAnOverride(t *testing.T) {
	fast, slow := limit.Limits{PointsPerSecond: 50, PointsBurst: 1000}, limit.Limits{PointsPerSecond: 1, PointsBurst: 1000}
	l, c := open(t, limit.Table{Defaults: fast})
	_, _ = put(l, acme, 2000)
	for _, own := range []map[tenant.ID]limit.Limits{{acme: slow}, {acme: {PointsPerSecond: 7, PointsBurst: 1000}}, nil} {
		c.advance(3 * time.Second)
		if err := l.Set(limit.Table{Defaults: fast, Overrides: own}); err != nil {
			t.Fatal(err)
		}
	}
	c.advance(time.Second)
	if got, _ := put(l, acme, 1000); got != 3*50+3*1+3*7+50 {
		t.Errorf("%d points accepted, want 224", got)
	}
}
