package tenants_test

import (
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/internal/clock"
	"github.com/tidemark-go/tidemark/internal/proof/testkit"
	"github.com/tidemark-go/tidemark/internal/store/tenancy"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/embedded"
	"github.com/tidemark-go/tidemark/tsdb/tenants"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"

	"github.com/tidemark-go/tidemark/tenant"
)

// TestErasuresWithAClockAhead: while the clock is ahead, no mark ends, neither the tenant's own nor through the erasure
// of another tenant.
func TestErasuresWithAClockAhead(t *testing.T) {
	testkit.Plain(t)
	bubble(t, func(t *testing.T) {
		var by atomic.Int64
		f := newFleet(t)
		store, err := embedded.New(t.Context(), embedded.Options{
			StoreOptions: tsdb.StoreOptions{Clock: func() time.Time { return time.Now().Add(time.Duration(by.Load())) }},
			Dir:          t.TempDir(),
			Exclusive:    true, // in a bubble
			GCInterval:   -1,
		})
		if err != nil {
			t.Fatal(err)
		}
		defer store.Close()
		if err := store.Ensure(t.Context(), f.datasets()...); err != nil {
			t.Fatal(err)
		}
		checkErasures(t, f, store, &by)
	})
}

// TestErasuresAskTheServiceForTheTime: the same holds from the start, by the service's clock.
func TestErasuresAskTheServiceForTheTime(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var by atomic.Int64
		f, _, conn, _ := open(t, tsdbtest.Options{})
		checkErasures(t, f, second(t, conn, tsdb.Options{StoreOptions: tsdb.StoreOptions{Clock: func() time.Time { return time.Now().Add(time.Duration(by.Load())) }}}), &by)
	})
}

func checkErasures(t *testing.T, f fleet, store *tsdb.Store, by *atomic.Int64) {
	opts := quick
	opts.Keep = 2 * time.Hour
	if _, err := tenants.Erase(t.Context(), store, acme, opts); err != nil {
		t.Fatal(err)
	}
	put := func() error {
		return f.readings.For(store, acme).Put(t.Context(), tsdb.NewEntity("a", "b"), time.Now(), "x")
	}
	by.Store(int64(4 * time.Hour))
	if err := put(); !errors.Is(err, tsdb.ErrErased) {
		t.Errorf("a write while the clock is ahead: %v, want ErrErased", err)
	}
	if _, err := tenants.Erase(t.Context(), store, tenant.MustParse("other"), quick); err != nil {
		t.Errorf("erasing another tenant without an end: %v", err)
	}
	if _, err := tenants.Erase(t.Context(), store, tenant.MustParse("third"), opts); !errors.Is(err, clock.ErrAhead) {
		t.Errorf("an erasure whose mark ends: %v, want ErrClock", err)
	}
	if _, err := tenants.Onboard(t.Context(), store, acme, tenants.Profile{}, tenants.OnboardOptions{}); !errors.Is(err, tsdb.ErrErased) {
		t.Errorf("onboarding while the clock is ahead: %v, want ErrErased", err)
	}
	by.Store(0)
	time.Sleep(tenancy.ErasedWithin)
	if err := put(); !errors.Is(err, tsdb.ErrErased) {
		t.Errorf("a write with the right time: %v, want ErrErased", err)
	}
	if _, err := tenants.Erase(t.Context(), store, tenant.MustParse("third"), opts); err != nil {
		t.Errorf("an erasure with the right time: %v", err)
	}
	time.Sleep(3 * time.Hour)
	if err := put(); err != nil {
		t.Errorf("a write after the end of the mark: %v", err)
	}
}
