package tsdb_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// TestCloseStoresWhatTenantsHold: a tenant whose share of the buffer is full uses up Close's context. What is held of
// other tenants is stored, and all points that are lost end with ErrClosed.
func TestCloseStoresWhatTenantsHold(t *testing.T) {
	longBubble(t, func(t *testing.T) {
		s := readings(t, tsdb.SchemaOptions{})
		store, conn := tsdbtest.Open(t, tsdbtest.Options{}, s)
		w := writer(t, store, tsdb.WriterOptions{BufferPoints: 40})
		stuck := s.For(store, tenant.MustParse("stuck"))
		repos := []*tsdb.Repository[reading]{stuck}
		for i := range 20 {
			repos = append(repos, s.For(store, tenant.MustParse(fmt.Sprint("quiet", i))))
		}
		for _, repo := range repos {
			c := &changing{t, repo, w, repo.Via(w).OnChange(halfDegree)}
			c.want("0:20:stored 10:20:unchanged")
		}
		conn.Inject(tsdbtest.FailEntries(codes.Unavailable, func(key string) bool { return strings.HasPrefix(key, "stuck#") }))
		for n := 0; stuck.Via(w).TryEnqueue(t.Context(), tsdb.NewEntity("flood", fmt.Sprint(n)), start, reading{}) == nil; n++ {
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		var lost []tsdb.Undelivered // only that of the held point: Close does not wait for the others
		if bad, ok := errors.AsType[*tsdb.UndeliveredError](w.Close(ctx)); ok {
			lost = bad.Points
		}
		if len(lost) == 0 {
			t.Error("no point is lost, want the one that was held of the tenant without space")
		}
		for _, u := range lost {
			if !errors.Is(u.Outcome.Err, tsdb.ErrClosed) {
				t.Errorf("%s of %s is %v, want ErrClosed", u.Entity, u.Tenant, u.Outcome)
			}
		}
		for _, repo := range repos[1:] {
			if p, err := repo.Latest(t.Context(), roof); err != nil || !p.Time.Equal(start.Add(10*time.Second)) {
				t.Errorf("%s: the newest point is of %v, %v; want the one that was held", repo.Tenant(), p.Time, err)
			}
		}
	})
}

// TestCloseOfManyTenants: Close does not wait for the space of each tenant on a goroutine of its own.
func TestCloseOfManyTenants(t *testing.T) {
	longBubble(t, func(t *testing.T) {
		s := readings(t, tsdb.SchemaOptions{})
		store, conn := tsdbtest.Open(t, tsdbtest.Options{}, s)
		w := writer(t, store, tsdb.WriterOptions{BufferPoints: 40})
		for i := range 400 {
			repo := s.For(store, tenant.MustParse(fmt.Sprint("t", i)))
			c := &changing{t, repo, w, repo.Via(w).OnChange(halfDegree)}
			c.want("0:20:stored 10:20:unchanged")
		}
		end := conn.Outage()
		before := runtime.NumGoroutine()
		closed := make(chan error)
		go func() { closed <- w.Close(t.Context()) }()
		synctest.Wait()
		if n := runtime.NumGoroutine() - before; n > 300 {
			t.Errorf("Close has %d goroutines for 400 tenants, want about 256", n)
		}
		end()
		if err := <-closed; err != nil {
			t.Error(err)
		}
	})
}

// TestCloseTwiceWhileHeld: a second Close does not end the first one, which stores what is held.
func TestCloseTwiceWhileHeld(t *testing.T) {
	longBubble(t, func(t *testing.T) {
		s := readings(t, tsdb.SchemaOptions{})
		store, conn := tsdbtest.Open(t, tsdbtest.Options{}, s)
		c := newChanging(t, store, s, tsdb.WriterOptions{BufferPoints: 40})
		c.want("0:20:stored 10:20:unchanged")
		end := conn.Outage()
		for n := 0; c.repo.Via(c.w).TryEnqueue(t.Context(), tsdb.NewEntity("flood", fmt.Sprint(n)), start, reading{}) == nil; n++ {
		}
		closed := make(chan error, 2)
		for range 2 {
			go func() { closed <- c.w.Close(t.Context()) }()
		}
		time.Sleep(time.Second)
		end()
		for range 2 {
			if err := <-closed; err != nil {
				t.Error(err)
			}
		}
		c.holds("0:20 10:20")
	})
}

// TestHeldPointThatTheJournalRefuses: a point that was left out, and that the journal takes and cannot write, is
// reported.
func TestHeldPointThatTheJournalRefuses(t *testing.T) {
	s := readings(t, tsdb.SchemaOptions{})
	store, _ := tsdbtest.Open(t, tsdbtest.Options{}, s)
	opts := journaled(t)
	var lost []tsdb.Undelivered
	opts.OnFailure = func(u tsdb.Undelivered) { lost = append(lost, u) }
	c := newChanging(t, store, s, opts)
	c.want("0:20:journaled 10:20:unchanged")
	if err := c.w.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(filepath.Join(opts.Journal.Dir, "journal.db"), 0); err != nil {
		t.Fatal(err)
	}
	_ = c.w.Close(t.Context())
	if len(lost) != 1 || !lost[0].Time.Equal(start.Add(10*time.Second)) || lost[0].Outcome.State == tsdb.Stored {
		t.Errorf("reported are %+v, want the point that was held", lost)
	}
}

// TestCloseStoresWhatWaits: points that wait for a point that is rejected during Close are stored in its place.
func TestCloseStoresWhatWaits(t *testing.T) {
	longBubble(t, func(t *testing.T) {
		s := readings(t, tsdb.SchemaOptions{})
		store, conn := tsdbtest.Open(t, tsdbtest.Options{}, s)
		c := newChanging(t, store, s, tsdb.WriterOptions{Linger: -1})
		conn.Inject(tsdbtest.Delay(time.Second))
		conn.Inject(tsdbtest.FailEntries(codes.InvalidArgument, func(string) bool { return true }).On(tsdbtest.MutateRows).Times(1))
		states := make([]tsdb.State, 4)
		for i := range states {
			if err := c.sink.EnqueueFunc(t.Context(), roof, start.Add(time.Duration(i)*time.Second), reading{20}, func(o tsdb.Outcome) { states[i] = o.State }); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Millisecond) // the request of the first one begins
		}
		if err := c.w.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if states[0] != tsdb.Rejected {
			t.Fatalf("the first point is %v", states[0])
		}
		for _, state := range states[1:] {
			if state != tsdb.Stored {
				t.Errorf("the outcomes are %v, want stored after the first one", states)
				break
			}
		}
		c.holds("1:20 2:20 3:20")
	})
}

// TestHeldPointsReachTheJournal: a Close whose context has ended syncs what is held, and the next writer delivers it.
func TestHeldPointsReachTheJournal(t *testing.T) {
	longBubble(t, func(t *testing.T) {
		s := readings(t, tsdb.SchemaOptions{})
		store, conn := tsdbtest.Open(t, tsdbtest.Options{}, s)
		opts := journaled(t)
		opts.OnFailure = func(u tsdb.Undelivered) { t.Errorf("lost %+v", u) }
		c := newChanging(t, store, s, opts)
		c.want("0:20:journaled 10:20:unchanged")
		if err := c.w.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		conn.Inject(tsdbtest.Fail(codes.Unavailable).On(tsdbtest.MutateRows))
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := c.w.Close(ctx); !errors.Is(err, tsdb.ErrUndelivered) {
			t.Errorf("Close = %v, want ErrUndelivered", err)
		}
		conn.Clear()
		c = newChanging(t, store, s, opts)
		if err := c.w.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		c.holds("0:20 10:20")
	})
}
