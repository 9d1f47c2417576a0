package limit_test

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/internal/gate"
	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tenant/limit"
)

// TestProfiles: an override in the table has precedence over the tenant's own document, and that over the defaults, for
// each limit, whichever was set last.
func TestProfiles(t *testing.T) {
	table, err := limit.Parse([]byte(`{
		"share": 0.5,
		"defaults": {"points_per_second": 100, "points_burst": 500, "entities": 10, "range_length": "24h"},
		"overrides": {"other": {"points_per_second": 7}}
	}`))
	if err != nil {
		t.Fatal(err)
	}
	l, _ := open(t, limit.Table{})
	none := tenant.MustParse("none")
	for _, id := range []tenant.ID{acme, other} {
		if err := gate.Of(l).SetProfile(id, []byte(`{"points_per_second": 20, "entities": 0}`)); err != nil {
			t.Fatal(err)
		}
	}
	want := func(what string, id tenant.ID, want limit.Limits) {
		t.Helper()
		if got := l.Limits(id); got != want {
			t.Errorf("%s: %s has %+v, want %+v", what, id, got, want)
		}
	}
	want("without a table", acme, limit.Limits{PointsPerSecond: 20, PointsBurst: 20})
	if err := l.Set(table); err != nil {
		t.Fatal(err)
	}
	want("own", acme, limit.Limits{PointsPerSecond: 10, PointsBurst: 10, RangeLength: 24 * time.Hour})
	want("overridden", other, limit.Limits{PointsPerSecond: 4, PointsBurst: 4, Entities: 5, RangeLength: 24 * time.Hour})
	defaults := limit.Limits{PointsPerSecond: 50, PointsBurst: 250, Entities: 5, RangeLength: 24 * time.Hour}
	want("neither", none, defaults)
	for _, bad := range []string{`{`, `5`, `[]`, `{"points": 5}`, `{"points_per_second": -1}`, `{"points_burst": 5}`, `{"entities": 1, "entities": 2}`, `{"range_length": 5}`} {
		if err := gate.Of(l).SetProfile(acme, []byte(bad)); !errors.Is(err, invalid.ErrLimits) {
			t.Errorf("%s: %v, want ErrInvalid", bad, err)
		}
	}
	want("after documents that are not valid", acme, limit.Limits{PointsPerSecond: 10, PointsBurst: 10, RangeLength: 24 * time.Hour})
	if err := l.Set(limit.Table{Defaults: limit.Limits{FanOut: 3}}); err != nil {
		t.Fatal(err)
	}
	want("with other defaults", acme, limit.Limits{PointsPerSecond: 20, PointsBurst: 20, FanOut: 3})
	want("no longer overridden", other, limit.Limits{PointsPerSecond: 20, PointsBurst: 20, FanOut: 3})
	for _, gone := range []string{"", " null\n"} {
		if err := gate.Of(l).SetProfile(acme, []byte(gone)); err != nil {
			t.Fatal(err)
		}
		want("without its own", acme, limit.Limits{FanOut: 3})
	}
	if err := gate.Of(new(limit.Limiter)).SetProfile(acme, nil); !errors.Is(err, invalid.ErrLimits) {
		t.Errorf("SetProfile of a zero limiter: %v, want ErrInvalid", err)
	}
	if err := gate.Of(l).SetProfile(tenant.ID{}, nil); !errors.Is(err, invalid.ErrLimits) {
		t.Errorf("SetProfile of the zero tenant: %v, want ErrInvalid", err)
	}
}

// TestProfilesHold: a tenant's usage is kept when its own limits change, and the new limits apply from the next call
// on.
func TestProfilesHold(t *testing.T) {
	l, c := open(t, limit.Table{Defaults: limit.Limits{PointsPerSecond: 100}})
	if n, _ := put(l, acme, 200); n != 100 {
		t.Fatalf("%d points accepted by the defaults, want 100", n)
	}
	if err := gate.Of(l).SetProfile(acme, []byte(`{"points_per_second": 10}`)); err != nil {
		t.Fatal(err)
	}
	if n, _ := put(l, acme, 200); n != 0 {
		t.Errorf("%d points accepted right after its own limits were set, want 0", n)
	}
	c.advance(time.Second)
	if n, err := put(l, acme, 200); n != 10 || exceeded(t, err).Limit != 10 {
		t.Errorf("%d points accepted in a second, want 10: %v", n, err)
	}
	if n, _ := put(l, other, 200); n != 100 {
		t.Errorf("%d points of another tenant accepted, want 100", n)
	}
}

// TestProfilesAtOnce sets documents and tables during calls.
func TestProfilesAtOnce(t *testing.T) {
	l, _ := open(t, limit.Table{})
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for i := range 200 {
				_ = gate.Of(l).SetProfile(acme, []byte(`{"entities": 3}`))
				_ = l.Set(limit.Table{Defaults: limit.Limits{PointsPerSecond: int64(i)}})
				_ = gate.Of(l).Write(acme, "d", "e", 1)
				if got := l.Limits(acme).Entities; got != 3 {
					t.Errorf("%d entities, want 3", got)
				}
			}
		})
	}
	all.Wait()
}
