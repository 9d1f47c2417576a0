package tsdb_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/proof/testkit"
	"github.com/tidemark-go/tidemark/internal/store/tenancy"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tenants"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// TestClassesAreReadAtMostOnceInAWhile: a store reads the classes with one request a minute, however many calls write,
// with none while no call writes, and never for a schema without Classes.
func TestClassesAreReadAtMostOnceInAWhile(t *testing.T) {
	longBubble(t, func(t *testing.T) {
		s, plain := choosing(t, tsdb.SchemaOptions{}), tsdb.MustDefine("p", tsdb.Key("a", "b"), codec.String(), tsdb.SchemaOptions{})
		store, conn := tsdbtest.Open(t, tsdbtest.Options{}, s, plain)
		reads := func(r *tsdb.Repository[string]) int {
			for range 600 {
				for range 10 / testkit.Stride(5) {
					go func() { _ = r.Put(t.Context(), roof, time.Now(), "x") }()
				}
				time.Sleep(time.Second)
			}
			synctest.Wait()
			n := conn.Counts().Upkeep
			conn.Reset()
			return n
		}
		reads(plain.For(store, acme))                                             // from here on marks are read at a steady pace
		marks := reads(plain.For(store, acme))                                    // both schemas read the erasure marks
		if both := reads(s.For(store, acme)); both-marks < 9 || both-marks > 12 { // the first time there are two
			t.Errorf("%d reads in ten minutes, %d of them of marks; want about ten others", both, marks)
		}
		time.Sleep(time.Hour)
		if n := conn.Counts().Upkeep; n != 0 {
			t.Errorf("%d reads without a call, want 0", n)
		}
	})
}

// TestClassesThatCannotBeRead: a store that knows no classes yet rejects points, with the reason. A store that knows
// them uses what it knows, and soon the new state. No write waits long.
func TestClassesThatCannotBeRead(t *testing.T) {
	longBubble(t, func(t *testing.T) {
		s, plain := choosing(t, tsdb.SchemaOptions{}), tsdb.MustDefine("p", tsdb.Key("a", "b"), codec.String(), tsdb.SchemaOptions{})
		store, conn, table := tsdbtest.OpenTable(t, tsdbtest.Options{}, s, plain)
		assign(t, store, acme, tenants.Profile{Retention: "d30"})
		r := s.For(store, acme)
		if err := plain.For(store, acme).Put(t.Context(), roof, time.Now(), "x"); err != nil {
			t.Fatal(err) // the marks are known
		}
		conn.Inject(tsdbtest.Fail(codes.PermissionDenied).On(tsdbtest.ReadRows))
		for way, put := range ways {
			if way == "Writer" || way == "journal" {
				continue
			}
			if err := put(t, r, roof, time.Now()); !errors.Is(err, tsdb.ErrRejected) || !strings.Contains(err.Error(), "retention classes of tenants") {
				t.Errorf("%s in a store that knows no classes: %v, want ErrRejected", way, err)
			}
		}
		if err := plain.For(store, acme).Put(t.Context(), roof, time.Now(), "x"); err != nil {
			t.Errorf("a schema without Classes: %v", err)
		}
		conn.Clear()
		if err := r.Put(t.Context(), roof, time.Now(), "x"); err != nil {
			t.Fatal(err)
		}
		other, _ := tsdbtest.Clients(t, conn)
		elsewhere := must[*tsdb.Store](t)(tsdb.New(other, tsdbtest.Table, tsdb.Options{}))
		defer elsewhere.Close()
		if _, err := tenants.Onboard(t.Context(), elsewhere, acme, tenants.Profile{}, tenants.OnboardOptions{Replace: true}); err != nil {
			t.Fatal(err)
		}
		conn.Inject(tsdbtest.Delay(time.Hour).On(tsdbtest.ReadRows))
		for range 10 {
			time.Sleep(time.Minute)
			began := time.Now()
			if err := r.Put(t.Context(), roof, time.Now(), "x"); err != nil {
				t.Errorf("Put with the last known classes: %v", err)
			}
			if took := time.Since(began); took > 11*time.Second {
				t.Errorf("Put took %v", took)
			}
		}
		checkCounts(t, "in the outage", inClasses(t, table, acme), map[string]int{"d30": 11, "keep": 1})
		conn.Clear()
		time.Sleep(tenancy.ClassesWithin + time.Millisecond)
		if err := r.Put(t.Context(), roof, time.Now(), "x"); err != nil {
			t.Fatal(err)
		}
		checkCounts(t, "after it", inClasses(t, table, acme), map[string]int{"d30": 11, "d7": 1, "keep": 1})
		conn.Inject(tsdbtest.Delay(time.Hour).On(tsdbtest.ReadRows))
		time.Sleep(90 * time.Second)
		if err := r.Put(t.Context(), roof, time.Now(), "x"); err != nil { // starts a read in the background
			t.Fatal(err)
		}
		_ = store.Close() // during that read: the bubble would not end if a goroutine stayed
	})
}

// TestAWriterWaitsForClasses: points whose class is not known are sent once it is known; with a journal, however long
// that takes.
func TestAWriterWaitsForClasses(t *testing.T) {
	for _, dir := range []string{"", t.TempDir()} {
		longBubble(t, func(t *testing.T) {
			s := choosing(t, tsdb.SchemaOptions{})
			store, conn, table := tsdbtest.OpenTable(t, tsdbtest.Options{}, s)
			client, _ := tsdbtest.Clients(t, conn)
			if _, err := tenants.Onboard(t.Context(), store, acme, tenants.Profile{Retention: "d30"}, tenants.OnboardOptions{}); err != nil {
				t.Fatal(err)
			}
			fresh := must[*tsdb.Store](t)(tsdb.New(client, tsdbtest.Table, tsdb.Options{}))
			defer fresh.Close()
			w := must[*tsdb.Writer](t)(fresh.NewWriter(tsdb.WriterOptions{Journal: tsdb.JournalOptions{Dir: dir}}))
			conn.Inject(tsdbtest.Fail(codes.Unavailable).On(tsdbtest.ReadRows))
			// The time is within the longest class, because the class is not known yet.
			if err := s.For(fresh, acme).Via(w).Enqueue(t.Context(), roof, time.Now().Add(-10*day), "x"); err != nil {
				t.Fatal(err)
			}
			time.Sleep(20 * time.Second)
			conn.Clear()
			if err := w.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			checkCounts(t, "written", inClasses(t, table, acme), map[string]int{"d30": 1})
		})
	}
}

// TestAnAssignmentThatCannotBeUnderstood: points of a tenant whose assignment does not decode go to the default class,
// and no tenant waits.
func TestAnAssignmentThatCannotBeUnderstood(t *testing.T) {
	longBubble(t, func(t *testing.T) {
		s := choosing(t, tsdb.SchemaOptions{})
		store, _, table := tsdbtest.OpenTable(t, tsdbtest.Options{}, s)
		for id, text := range map[string]string{"a": "{", "b": `{"retention":7}`, "c": `{"retention":"d365"}`, "d": `{"classes":{"r":"d30"}}`, "e": ""} {
			apply(t, table, "!tenant#"+id, newMutation("_sys", "c", text))
		}
		for _, id := range []string{"a", "b", "c", "d", "e"} {
			if err := s.For(store, tenant.MustParse(id)).Put(t.Context(), roof, time.Now(), "x"); err != nil {
				t.Fatal(id, err)
			}
			want := "d7"
			if id == "d" {
				want = "d30"
			}
			checkCounts(t, id, inClasses(t, table, tenant.MustParse(id)), map[string]int{want: 1})
		}
	})
}

// TestWhatASchemaMayOffer: a schema offers each class once, wherever it is listed, and not more than a table has
// families for. The catalogue stores the offered classes; offering more is no conflict.
func TestWhatASchemaMayOffer(t *testing.T) {
	define := func(opts tsdb.SchemaOptions) error {
		_, err := tsdb.Define("r", tsdb.Key("a"), codec.String(), opts)
		return err
	}
	for _, tt := range []struct {
		opts tsdb.SchemaOptions
		want string
	}{
		{tsdb.SchemaOptions{Retention: week, Classes: []gc.Class{week}}, "each class once"},
		{tsdb.SchemaOptions{Retention: week, Classes: []gc.Class{month}, FormerClasses: []gc.Class{month}}, "each class once"},
		{tsdb.SchemaOptions{Classes: manyClasses(64)}, "65 times 1"},
		{tsdb.SchemaOptions{Classes: manyClasses(50), Precision: tsdb.Milliseconds, Head: tsdb.Head{Points: 1}}, "at most 100"},
	} {
		if err := define(tt.opts); !errors.Is(err, tsdb.ErrInvalid) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("Define: %v, want %q", err, tt.want)
		}
	}
	if err := define(tsdb.SchemaOptions{Classes: []gc.Class{{Name: "v", Policy: gc.MaxVersions(2)}}}); !errors.Is(err, invalid.ErrVersions) {
		t.Errorf("a class of versions: %v, want ErrVersions", err)
	}
	older, newer := readings(t, tsdb.SchemaOptions{Retention: week, FormerClasses: []gc.Class{month}}), readings(t, tsdb.SchemaOptions{Retention: week, Classes: []gc.Class{month}})
	store, _, table := tsdbtest.OpenTable(t, tsdbtest.Options{}, older)
	for _, s := range []*tsdb.Schema[reading]{newer, older, newer} {
		if err := store.Verify(t.Context(), s); err != nil {
			t.Error(err)
		}
		if err := store.Ensure(t.Context(), s); err != nil {
			t.Error(err)
		}
	}
	stored := ""
	row, err := table.ReadRow(t.Context(), "!dataset#readings")
	for _, item := range row["_sys"] {
		stored += string(item.Value)
	}
	if want := `{"name":"d30","policy":"maxage=30d","choice":true}`; err != nil || !strings.Contains(stored, want) {
		t.Errorf("the catalogue has %s, %v", stored, err)
	}
}

// TestCachedInTheClassThatIsWritten: a cached point expires with the class that it was written in, not with the default
// class.
func TestCachedInTheClassThatIsWritten(t *testing.T) {
	longBubble(t, func(t *testing.T) {
		s := choosing(t, tsdb.SchemaOptions{})
		c := testkit.NewClock(start)
		store, conn := tsdbtest.Open(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Clock: c.Now, Cache: tsdb.CacheOptions{Entries: 100, MaxAge: time.Hour}}}, s)
		repo := s.For(store, acme)
		seen := func(visible bool) {
			t.Helper()
			conn.Reset()
			_, err := repo.Latest(t.Context(), roof, tsdb.MaxStale(time.Hour))
			if visible && (err != nil || conn.Counts().Calls[tsdbtest.ReadRows] > 0) || !visible && !errors.Is(err, tsdb.ErrNotFound) {
				t.Errorf("at %v: %v, %v", c.Now(), err, conn.Counts())
			}
		}
		assign(t, store, acme, tenants.Profile{Retention: "d30"})
		for range 2 { // the second write finds the first in the cache
			if err := repo.Put(t.Context(), roof, c.Now(), "x"); err != nil {
				t.Fatal(err)
			}
			if _, err := repo.Latest(t.Context(), roof, tsdb.MaxStale(time.Hour)); err != nil {
				t.Fatal(err)
			}
		}
		seen(true)
		c.Set(start.Add(30 * day))
		seen(true)
		c.Add(time.Millisecond)
		seen(false)
		assign(t, store, acme, tenants.Profile{})
		for range 2 {
			if err := repo.Put(t.Context(), roof, c.Now(), "x"); err != nil {
				t.Fatal(err)
			}
			_, _ = repo.Latest(t.Context(), roof, tsdb.MaxStale(time.Hour))
		}
		c.Add(7 * day)
		seen(true)
		c.Add(time.Millisecond)
		seen(false)
	})
}

// TestTheStoreThatOnboardsGoesByItAtOnce: the store that onboards a tenant applies its class at once. Other stores do
// within tenancy.ClassesWithin, and not before they read the classes again.
func TestTheStoreThatOnboardsGoesByItAtOnce(t *testing.T) {
	longBubble(t, func(t *testing.T) {
		s := choosing(t, tsdb.SchemaOptions{})
		store, conn, table := tsdbtest.OpenTable(t, tsdbtest.Options{}, s)
		other, _ := tsdbtest.Clients(t, conn)
		elsewhere := must[*tsdb.Store](t)(tsdb.New(other, tsdbtest.Table, tsdb.Options{}))
		defer elsewhere.Close()
		seconds := 0
		put := func(store *tsdb.Store) {
			t.Helper()
			seconds++
			if err := s.For(store, acme).Put(t.Context(), roof, start.Add(-time.Duration(seconds)*time.Second), "x"); err != nil {
				t.Fatal(err)
			}
		}
		put(store)
		put(elsewhere)
		if _, err := tenants.Onboard(t.Context(), store, acme, tenants.Profile{Retention: "d30"}, tenants.OnboardOptions{}); err != nil {
			t.Fatal(err)
		}
		put(store)
		checkCounts(t, "at once", inClasses(t, table, acme), map[string]int{"d7": 2, "d30": 1})
		put(elsewhere)
		checkCounts(t, "elsewhere, too soon", inClasses(t, table, acme), map[string]int{"d7": 3, "d30": 1})
		time.Sleep(tenancy.ClassesWithin + time.Millisecond)
		put(elsewhere)
		checkCounts(t, "elsewhere, in time", inClasses(t, table, acme), map[string]int{"d7": 3, "d30": 2})
	})
}
