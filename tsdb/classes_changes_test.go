package tsdb_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/internal/store/tenancy"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tenants"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// TestAProfileThatChangesIsOneToRead: a store that knows the classes of hundreds of tenants reads only the changed
// profile, and nothing if none has changed. A change that another program makes without the log of changes takes effect
// within the hour.
func TestAProfileThatChangesIsOneToRead(t *testing.T) {
	longBubble(t, func(t *testing.T) {
		s := choosing(t, tsdb.SchemaOptions{})
		store, conn, table := tsdbtest.OpenTable(t, tsdbtest.Options{}, s)
		for i := range 500 {
			apply(t, table, fmt.Sprintf("!tenant#t%d", i), newMutation("_sys", "c", `{"retention":"d30"}`))
		}
		client, _ := tsdbtest.Clients(t, conn)
		other := must[*tsdb.Store](t)(tsdb.New(client, tsdbtest.Table, tsdb.Options{}))
		defer other.Close()
		puts := 0
		wait := func(d time.Duration) {
			for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(20 * time.Second) {
				puts++
				if err := s.For(other, acme).Put(t.Context(), roof, time.Now(), "x"); err != nil {
					t.Fatal(err)
				}
			}
		}
		wait(time.Minute)
		conn.Reset()
		wait(20 * time.Minute)
		if n := conn.Counts().UpkeepRows; n != 0 {
			t.Errorf("%d rows read without a changed profile, want 0", n)
		}
		checkCounts(t, "at first", inClasses(t, table, acme), map[string]int{"d7": puts})
		assign(t, store, acme, tenants.Profile{Retention: "d30"})
		wait(tenancy.ClassesWithin + time.Second)
		conn.Reset()
		before := inClasses(t, table, acme)["d30"]
		wait(20 * time.Minute)
		if n := conn.Counts().UpkeepRows; n > 30 { // the epoch, once a minute
			t.Errorf("%d rows read, want at most 30", n)
		}
		if got := inClasses(t, table, acme)["d30"] - before; got != 60 {
			t.Errorf("%d of 60 points are in the new class", got)
		}
		apply(t, table, "!tenant#acme", newMutation("_sys", "c", `{"retention":"d7"}`))
		wait(time.Hour + time.Minute)
		before = inClasses(t, table, acme)["d30"]
		wait(time.Minute)
		if got := inClasses(t, table, acme)["d30"] - before; got != 0 {
			t.Errorf("%d points are in the class that another program set an hour ago", got)
		}
	})
}

// TestAnOnboardingThatIsCutOff: if onboarding fails at any of its requests, other stores apply in time what was stored.
func TestAnOnboardingThatIsCutOff(t *testing.T) {
	for cut, total := 1, 1; cut <= total; cut++ {
		longBubble(t, func(t *testing.T) {
			s := choosing(t, tsdb.SchemaOptions{})
			store, conn, table := tsdbtest.OpenTable(t, tsdbtest.Options{}, s)
			client, _ := tsdbtest.Clients(t, conn)
			other := must[*tsdb.Store](t)(tsdb.New(client, tsdbtest.Table, tsdb.Options{}))
			defer other.Close()
			put := func() {
				if err := s.For(other, acme).Put(t.Context(), roof, time.Now(), "x"); err != nil {
					t.Fatal(err)
				}
			}
			assign(t, store, tenant.MustParse("ab"), tenants.Profile{Retention: "d30"})
			put()
			ctx, end := context.WithCancel(t.Context())
			defer end()
			var calls atomic.Int64
			conn.Inject(tsdbtest.DelayBy(func() time.Duration {
				if calls.Add(1) == int64(cut) {
					end()
				}
				return 0
			}))
			_, _ = tenants.Onboard(ctx, store, acme, tenants.Profile{Retention: "d30"}, tenants.OnboardOptions{})
			conn.Clear()
			total = max(total, int(calls.Load())+1)
			time.Sleep(time.Second)
			put() // a store that reads while the change is open
			time.Sleep(tenancy.ClassesWithin + time.Second)
			want := map[string]int{"d7": 2}
			if p, err := tenants.Load(t.Context(), store, acme); err == nil && p.Retention == "d30" {
				want = map[string]int{"d7": 2, "d30": 1}
			}
			put()
			if want["d30"] == 0 {
				want["d7"]++
			}
			checkCounts(t, fmt.Sprintf("cut at %d", cut), inClasses(t, table, acme), want)
			// The next change of the tenant closes the open one.
			assign(t, store, acme, tenants.Profile{Retention: "d7"})
			time.Sleep(tenancy.ClassesWithin + time.Second)
			put()
			conn.Reset()
			for range 10 {
				time.Sleep(time.Minute + time.Second)
				put()
			}
			if n := conn.Counts().UpkeepRows; n > 21 { // one epoch for each log
				t.Errorf("cut at %d: %d rows read, so the change is still open", cut, n)
			}
		})
	}
}
