package tenants_test

import (
	"errors"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/tidemark-go/tidemark/internal/store/tenancy"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tenants"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

func newWriter(t testing.TB, store *tsdb.Store, dir string) *tsdb.Writer {
	t.Helper()
	w, err := store.NewWriter(tsdb.WriterOptions{Linger: -1, Journal: tsdb.JournalOptions{Dir: dir}})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// fullJournal leaves a journal with undelivered points of two tenants, and with dead letters of both.
func fullJournal(t testing.TB, f fleet, store *tsdb.Store, conn *tsdbtest.Conn) (dir string) {
	t.Helper()
	dir = t.TempDir()
	w := newWriter(t, store, dir)
	conn.Inject(tsdbtest.FailEntries(codes.InvalidArgument, func(string) bool { return true }))
	for _, id := range []tenant.ID{acme, tenant.MustParse("acme2")} {
		if err := f.readings.For(store, id).Via(w).Enqueue(t.Context(), tsdb.NewEntity("dead", "x"), start, "x"); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	conn.Clear()
	conn.Outage()
	for i := range 50 {
		for _, id := range []tenant.ID{acme, tenant.MustParse("acme2")} {
			at := start.Add(time.Duration(i) * time.Minute)
			for _, s := range []*tsdb.Schema[string]{f.readings, f.salted} {
				if err := s.For(store, id).Via(w).Enqueue(t.Context(), tsdb.NewEntity("late", "x"), at, "x"); err != nil {
					t.Fatal(err)
				}
			}
			if err := f.events.For(store, id).Via(w).Enqueue(t.Context(), tsdb.NewEntity("late"), at, "x"); err != nil {
				t.Fatal(err)
			}
		}
	}
	if s := w.Stats().Journal; s.Points != 300 || s.DeadLetters != 2 {
		t.Fatalf("journal stats %+v", s)
	}
	closed, cancel := contextOver(t)
	defer cancel()
	if err := w.Close(closed); !errors.Is(err, tsdb.ErrUndelivered) {
		t.Fatal(err)
	}
	conn.Clear()
	return dir
}

// TestAJournalBringsNothingBack: a process with a full journal of the tenant, started after the erasure, delivers the
// points of other tenants. Neither rows nor dead letters of the erased tenant are left.
func TestAJournalBringsNothingBack(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f, store, conn, table := open(t, tsdbtest.Options{})
		dir := fullJournal(t, f, store, conn)
		f.fill(t, store, acme)
		if _, err := tenants.Erase(t.Context(), store, acme, quick); err != nil {
			t.Fatal(err)
		}
		other := second(t, conn, tsdb.Options{})
		conn.Inject(tsdbtest.Fail(codes.Unavailable).On(tsdbtest.ReadRows).Times(3)) // the marks cannot be read at first
		w := newWriter(t, other, dir)
		if err := w.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		s := w.Stats().Journal
		for range 60 { // a dead letter is counted once it has been dropped
			if s.DeadLetters == 1 && s.Erased == 151 {
				break
			}
			time.Sleep(time.Second)
			s = w.Stats().Journal
		}
		if s.Points != 0 || s.DeadLetters != 1 || s.Erased != 151 {
			t.Errorf("stats %+v, want 150 points and a dead letter dropped", s)
		}
		if left := dump(t, table, ofTenant("acme")); len(left) > 0 {
			t.Errorf("rows of the erased tenant: %v", left)
		}
		if n := len(dump(t, table, ofTenant("acme2"))); n != 151 {
			t.Errorf("the other tenant has %d rows, want 150 points and a head", n)
		}
		for l, err := range w.DeadLetters(t.Context()) {
			if err != nil || l.Tenant.String() != "acme2" {
				t.Errorf("dead letter %+v, %v", l, err)
			}
		}
		if err := w.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// TestAJournalOfAnErasedEntity: only points of the erased entity are dropped.
func TestAJournalOfAnErasedEntity(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f, store, conn, table := open(t, tsdbtest.Options{})
		dir := fullJournal(t, f, store, conn)
		w := newWriter(t, store, dir)
		opts := quick
		opts.Writers = []*tsdb.Writer{w}
		rep, err := tenants.EraseEntity(t.Context(), store, acme, "", map[string]string{"site": "late", "device": "x"}, opts)
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n := len(dump(t, table, ofTenant("acme"))); n != 51 {
			t.Errorf("%d rows, want those of the other entity and its head; report %+v", n, rep)
		}
		if s := w.Stats().Journal; s.DeadLetters != 2 {
			t.Errorf("stats %+v", s)
		}
		if err := w.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// TestAWriterThatHoldsPoints: points in a running writer's buffer, and its dead letters, are dropped with the tenant.
// Points that it accepts before it reads the mark are not stored after the deletion.
func TestAWriterThatHoldsPoints(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f, store, conn, table := open(t, tsdbtest.Options{})
		f.fill(t, store, acme)
		other := second(t, conn, tsdb.Options{})
		w := newWriter(t, other, t.TempDir())
		plain, err := other.NewWriter(tsdb.WriterOptions{})
		if err != nil {
			t.Fatal(err)
		}
		stop, stopped := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(stopped)
			for i := 0; ; i++ {
				at := start.Add(time.Duration(i) * time.Second)
				for _, w := range []*tsdb.Writer{w, plain} {
					err := f.readings.For(other, acme).Via(w).Enqueue(t.Context(), tsdb.NewEntity("held", "x"), at, "x")
					if err != nil && !errors.Is(err, tsdb.ErrErased) {
						t.Error(err)
					}
				}
				select {
				case <-stop:
					return
				case <-time.After(100 * time.Millisecond):
				}
			}
		}()
		time.Sleep(3 * time.Second)
		rep, err := tenants.Erase(t.Context(), store, acme, tenants.EraseOptions{Settle: tenancy.ErasedWithin + 10*time.Second})
		if err != nil || rep.Late != 0 || rep.Rows < tenantRows+50 {
			t.Errorf("report %+v, error %v", rep, err)
		}
		close(stop)
		<-stopped
		_ = w.Close(t.Context())
		if err := plain.Close(t.Context()); err != nil && !errors.Is(err, tsdb.ErrErased) {
			t.Error(err)
		}
		if left := dump(t, table, ofTenant("acme")); len(left) > 0 {
			t.Errorf("left %v", left)
		}
	})
}

// TestAWarmCache: after a readmission, another store's cache shows no points from before the erasure.
func TestAWarmCache(t *testing.T) {
	t.Run("that looked meanwhile", func(t *testing.T) { bubble(t, func(t *testing.T) { warmCache(t, true) }) })
	t.Run("that did not look", func(t *testing.T) { bubble(t, func(t *testing.T) { warmCache(t, false) }) })
}

func warmCache(t *testing.T, looks bool) {
	f, store, conn, _ := open(t, tsdbtest.Options{})
	other := second(t, conn, tsdb.Options{StoreOptions: tsdb.StoreOptions{Cache: tsdb.CacheOptions{Entries: 100, MaxAge: time.Hour}}})
	f.fill(t, store, acme)
	repo, e := f.readings.For(other, acme), tsdb.NewEntity("site#0", "dev 0")
	if _, err := repo.Latest(t.Context(), e, tsdb.MaxStale(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if _, err := tenants.Erase(t.Context(), store, acme, quick); err != nil {
		t.Fatal(err)
	}
	time.Sleep(tenancy.ErasedWithin + time.Second)
	if looks {
		if _, err := repo.Latest(t.Context(), e, tsdb.MaxStale(time.Hour)); !errors.Is(err, tsdb.ErrErased) {
			t.Errorf("Latest of the erased tenant: %v, want ErrErased", err)
		}
	}
	if err := tenants.Readmit(t.Context(), store, acme); err != nil {
		t.Fatal(err)
	}
	time.Sleep(tenancy.ErasedWithin + time.Second)
	if p, err := repo.Latest(t.Context(), e, tsdb.MaxStale(time.Hour)); !errors.Is(err, tsdb.ErrNotFound) {
		t.Errorf("Latest after the readmission = %v, %v", p, err)
	}
}
