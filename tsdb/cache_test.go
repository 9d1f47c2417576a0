package tsdb_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"cloud.google.com/go/bigtable"
	"google.golang.org/grpc/codes"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/internal/proof/testkit"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// cached returns options of a store with a cache.
var cached = tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Cache: tsdb.CacheOptions{Entries: 1000, MaxAge: time.Hour}}}

// reads runs a call and returns the number of table reads that it made.
func reads(conn *tsdbtest.Conn, call func()) int {
	before := conn.Counts().Calls[tsdbtest.ReadRows]
	call()
	return conn.Counts().Calls[tsdbtest.ReadRows] - before
}

// latest checks the result of Latest and the number of table reads.
func latest(t *testing.T, conn *tsdbtest.Conn, repo *tsdb.Repository[reading], e tsdb.Entity, want float64, wantReads int, opts ...tsdb.ReadOption) {
	t.Helper()
	var p tsdb.Point[reading]
	var err error
	n := reads(conn, func() { p, err = repo.Latest(t.Context(), e, opts...) })
	if err != nil || p.Value.TempC != want || p.Entity != e || n != wantReads {
		t.Errorf("Latest(%v) = %v, %v with %d reads; want %v with %d", opts, p, err, n, want, wantReads)
	}
}

// markedAfresh makes the store read its erasure marks again, with a call that does not use the cache.
func markedAfresh(t *testing.T, repo *tsdb.Repository[reading]) {
	t.Helper()
	if _, err := repo.Get(t.Context(), tsdb.NewEntity("no", "where"), start); !errors.Is(err, tsdb.ErrNotFound) {
		t.Fatal(err)
	}
	synctest.Wait() // they are read in the background
}

// TestMaxStaleIsWhatACallerAsksFor: an answer from memory is never older than MaxStale, and never given without MaxStale.
func TestMaxStaleIsWhatACallerAsksFor(t *testing.T) {
	longBubble(t, func(t *testing.T) {
		s := readings(t, tsdb.SchemaOptions{})
		store, conn, table := tsdbtest.OpenTable(t, cached, s)
		repo := s.For(store, acme)
		behind := func(temp string) { // writes as another program
			m := bigtable.NewMutation()
			m.Set("keep", "p:json", bigtable.Time(start), []byte(`{"temp_c":`+temp+`}`))
			apply(t, table, key(roof, start), m)
		}
		behind("1")
		latest(t, conn, repo, roof, 1, 1)
		latest(t, conn, repo, roof, 1, 1, tsdb.MaxStale(time.Minute)) // a plain read is not cached
		behind("2")
		time.Sleep(10 * time.Second)
		markedAfresh(t, repo)
		latest(t, conn, repo, roof, 1, 0, tsdb.MaxStale(time.Minute))
		latest(t, conn, repo, roof, 1, 0, tsdb.MaxStale(10*time.Second), tsdb.Concurrency(3), tsdb.Hedge{After: 1, MaxRatio: 1})
		latest(t, conn, repo, roof, 2, 1)
		latest(t, conn, repo, roof, 2, 1, tsdb.MaxStale(0))
		latest(t, conn, repo, roof, 1, 0, tsdb.MaxStale(time.Minute)) // those reads did not use the cache
		latest(t, conn, repo, roof, 2, 1, tsdb.MaxStale(10*time.Second-1))
		latest(t, conn, repo, roof, 2, 0, tsdb.MaxStale(1))
		time.Sleep(time.Hour - 1)
		markedAfresh(t, repo)
		behind("3")
		latest(t, conn, repo, roof, 2, 0, tsdb.MaxStale(1000*time.Hour))
		time.Sleep(time.Nanosecond)
		latest(t, conn, repo, roof, 3, 1, tsdb.MaxStale(1000*time.Hour)) // older than MaxAge
		if got := cacheOf(t, store).Stats(); got.Hits != 5 || got.Misses != 3 || got.Shared != 0 || got.Entries != 1 || got.Bytes != 1024 {
			t.Errorf("cache stats %+v, want 5 hits, 3 misses, and 1 entry of 1024 bytes", got)
		}
		store, conn = tsdbtest.Open(t, tsdbtest.Options{}, s) // without a cache
		repo = s.For(store, acme)
		if err := repo.Put(t.Context(), roof, start, reading{7}); err != nil {
			t.Fatal(err)
		}
		latest(t, conn, repo, roof, 7, 1, tsdb.MaxStale(time.Hour))
		latest(t, conn, repo, roof, 7, 1, tsdb.MaxStale(time.Hour))
		if cacheOf(t, store) != nil {
			t.Error("a store without CacheOptions has a cache")
		}
	})
}

// TestCachedLatestMany: LatestMany takes each entity from the cache or the table, in order, including missing and corrupt points.
func TestCachedLatestMany(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := readings(t, tsdb.SchemaOptions{})
		store, conn, table := tsdbtest.OpenTable(t, cached, s)
		repo := s.For(store, acme)
		var devices []tsdb.Entity
		for n := range 50 {
			devices = append(devices, device("berlin", n))
			if n%5 != 0 {
				putAll(t, repo, []tsdb.Point[reading]{{Entity: devices[n], Time: start, Value: reading{float64(n)}}})
			}
		}
		m := bigtable.NewMutation()
		m.Set("keep", "p:json", bigtable.Time(start), []byte(`{"temp_c":`))
		apply(t, table, key(devices[5], start), m)
		m = bigtable.NewMutation()
		m.Set("keep", "p:cbor", bigtable.Time(start), []byte(`x`))
		apply(t, table, key(devices[10], start), m)
		check := func(asked []tsdb.Entity, wantReads int) {
			t.Helper()
			answers, histories := []latestResult[reading](nil), []tsdb.History[reading](nil)
			var err, err1 error
			got := reads(conn, func() {
				answers, err = latestMany(t.Context(), repo, asked, tsdb.MaxStale(time.Minute), tsdb.Concurrency(3))
			})
			if got != wantReads || !errors.Is(err, codec.ErrCorrupt) {
				t.Errorf("%d reads, want %d (error %v)", got, wantReads, err)
			}
			histories, err1 = repo.LatestMany(t.Context(), asked, 1, tsdb.MaxStale(time.Minute))
			plain, err2 := latestMany(t.Context(), repo, asked)
			if err.Error() != err2.Error() || err.Error() != err1.Error() {
				t.Errorf("errors %v, %v and %v", err, err1, err2)
			}
			for i, a := range answers {
				if a.Point != plain[i].Point || fmt.Sprint(a.Err) != fmt.Sprint(plain[i].Err) || errors.Is(a.Err, tsdb.ErrNotFound) != errors.Is(plain[i].Err, tsdb.ErrNotFound) {
					t.Errorf("answer %d: %+v, without a cache %+v", i, a, plain[i])
				}
				if h := histories[i]; h.Entity != a.Point.Entity || len(h.Points) == 1 != (a.Point.Time != time.Time{}) || len(h.Points) == 1 && h.Points[0] != a.Point {
					t.Errorf("history %d: %+v, answer %+v", i, h, a)
				}
			}
		}
		check(slices.Concat(devices[:9], devices[:3]), 9)
		check(append(devices[:20:20], tsdb.NewEntity("berlin")), 11)
		check(devices[:20], 1) // payloads that do not decode are read again
		if n := reads(conn, func() { _, _ = repo.LatestMany(t.Context(), devices[:3], 2, tsdb.MaxStale(time.Minute)) }); n != 3 {
			t.Errorf("two points of each of 3 known entities took %d reads", n)
		}
	})
}

// TestOwnWritesAreSeen: the next cached read after a write shows it, without a table read where the store knows the result.
func TestOwnWritesAreSeen(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := readings(t, tsdb.SchemaOptions{})
		firstWins, err := tsdb.Define("first", tsdb.Key("site", "device"), codec.JSON[reading](), tsdb.SchemaOptions{FirstWins: true})
		if err != nil {
			t.Fatal(err)
		}
		store, conn := tsdbtest.Open(t, cached, s, firstWins)
		w, err := store.NewWriter(tsdb.WriterOptions{Linger: together})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = w.Close(t.Context()) }()
		journal, err := store.NewWriter(tsdb.WriterOptions{Journal: tsdb.JournalOptions{Dir: t.TempDir()}})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = journal.Close(t.Context()) }()
		repo, other := s.For(store, acme), firstWins.For(store, acme)
		at := func(n int) time.Time { return start.Add(time.Duration(n) * time.Second) }
		pt := func(n int, v float64) tsdb.Point[reading] {
			return tsdb.Point[reading]{Entity: roof, Time: at(n), Value: reading{v}}
		}
		ctx := t.Context()
		for _, step := range []struct {
			name  string
			repo  *tsdb.Repository[reading]
			call  func() error
			reads int
		}{
			{"nothing", repo, func() error { return nil }, 0},
			{"the first Put", repo, func() error { return repo.Put(ctx, roof, at(10), reading{1}) }, 0},
			{"a later Put", repo, func() error { return repo.Put(ctx, roof, at(20), reading{2}) }, 0},
			{"a late Put", repo, func() error { return repo.Put(ctx, roof, at(5), reading{3}) }, 0},
			{"a Put at the same time", repo, func() error { return repo.Put(ctx, roof, at(20), reading{4}) }, 0},
			{"PutMany", repo, func() error {
				_, err := repo.PutMany(ctx, []tsdb.Point[reading]{pt(30, 5), pt(31, 6), pt(31, 7), pt(29, 8)})
				return err
			}, 0},
			{"PutIfAbsent", repo, func() error { _, err := repo.PutIfAbsent(ctx, roof, at(40), reading{9}); return err }, 0},
			{"PutIfAbsent that finds one", repo, func() error { _, err := repo.PutIfAbsent(ctx, roof, at(40), reading{10}); return err }, 1},
			{"a writer", repo, func() error { return errors.Join(repo.Via(w).Enqueue(ctx, roof, at(50), reading{11}), w.Flush(ctx)) }, 0},
			{"a writer's PutMany", repo, func() error {
				_, err := repo.Via(w).EnqueueMany(ctx, []tsdb.Point[reading]{pt(51, 12), pt(49, 13)})
				return err
			}, 0},
			{"a writer with a journal", repo, func() error {
				return errors.Join(repo.Via(journal).Enqueue(ctx, roof, at(60), reading{14}), journal.Flush(ctx))
			}, 0},
			{"Delete of an old point", repo, func() error { return repo.Delete(ctx, roof, at(50)) }, 0},
			{"Delete", repo, func() error { return repo.Delete(ctx, roof, at(60)) }, 1},
			{"DeleteRange", repo, func() error { _, err := repo.DeleteRange(ctx, roof, tsdb.Since(at(35))); return err }, 1},
			{"DeletePrefix of others", repo, func() error { _, err := repo.DeletePrefix(ctx, tsdb.NewPrefix("ber")); return err }, 0},
			{"DeletePrefix", repo, func() error { _, err := repo.DeletePrefix(ctx, tsdb.NewPrefix("berlin")); return err }, 1},
			{"Put after it", repo, func() error { return repo.Put(ctx, roof, at(3), reading{15}) }, 0},
			{"DeleteRange of all", repo, func() error { _, err := repo.DeleteRange(ctx, roof, tsdb.AllTime()); return err }, 1},
			{"Put after it", repo, func() error { return repo.Put(ctx, roof, at(3), reading{16}) }, 0},
			{"deletion of all", repo, func() error { _, err := repo.DeletePrefix(ctx, tsdb.AllEntities()); return err }, 1},
			{"nothing, first wins", other, func() error { return nil }, 0},
			{"a first Put", other, func() error { return other.Put(ctx, roof, at(1), reading{17}) }, 1},
			{"a first Put by a writer", other, func() error { return errors.Join(other.Via(w).Enqueue(ctx, roof, at(2), reading{18}), w.Flush(ctx)) }, 1},
			{"first points of PutMany", other, func() error { _, err := other.PutMany(ctx, []tsdb.Point[reading]{pt(3, 19)}); return err }, 1},
		} {
			latest := func(opts ...tsdb.ReadOption) string { return fmt.Sprint(step.repo.Latest(ctx, roof, opts...)) }
			before := latest(tsdb.MaxStale(time.Minute))
			if err := step.call(); err != nil {
				t.Fatalf("%s: %v", step.name, err)
			}
			var got string
			n := reads(conn, func() { got = latest(tsdb.MaxStale(time.Minute)) })
			if want := latest(); got != want || n != step.reads {
				t.Errorf("after %s: %s with %d reads, want %s with %d; before it was %s", step.name, got, n, want, step.reads, before)
			}
		}
	})
}

// TestWritesThatFail: a rejected write does not change the cache. After a write with unknown outcome the table is read.
func TestWritesThatFail(t *testing.T) {
	longBubble(t, func(t *testing.T) {
		s := readings(t, tsdb.SchemaOptions{})
		opts := cached
		opts.Timeouts.Write = time.Second
		store, conn := tsdbtest.Open(t, opts, s)
		repo := s.For(store, acme)
		w, err := store.NewWriter(tsdb.WriterOptions{DeliveryTimeout: 30 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = w.Close(t.Context()) }()
		n := 0
		for _, tt := range []struct {
			name  string
			fault tsdbtest.Fault
			state error
			reads int
		}{
			{"refused", tsdbtest.Fail(codes.PermissionDenied), tsdb.ErrRejected, 0},
			{"lost", tsdbtest.LoseResponse(codes.Unavailable), tsdb.ErrUnknown, 1},
			{"lost once", tsdbtest.LoseResponse(codes.Unavailable).Times(1), nil, 0},
		} {
			for name, put := range map[string]func(at time.Time, v reading) error{
				"Put": func(at time.Time, v reading) error { return repo.Put(t.Context(), roof, at, v) },
				"PutMany": func(at time.Time, v reading) error {
					_, err := repo.PutMany(t.Context(), []tsdb.Point[reading]{{Entity: roof, Time: at, Value: v}})
					return err
				},
				"writer": func(at time.Time, v reading) error {
					_, err := repo.Via(w).EnqueueMany(t.Context(), []tsdb.Point[reading]{{Entity: roof, Time: at, Value: v}})
					return err
				},
				"Delete": func(at time.Time, _ reading) error { return repo.Delete(t.Context(), roof, at.Add(-time.Second)) },
			} {
				n++
				conn.Clear()
				if err := repo.Put(t.Context(), roof, start.Add(time.Duration(n-1)*time.Second), reading{float64(-n)}); err != nil {
					t.Fatal(err)
				}
				if _, err := repo.Latest(t.Context(), roof, tsdb.MaxStale(time.Minute)); err != nil {
					t.Fatal(err)
				}
				for _, m := range []tsdbtest.Method{tsdbtest.MutateRow, tsdbtest.MutateRows} {
					conn.Inject(tt.fault.On(m))
				}
				err := put(start.Add(time.Duration(n)*time.Second), reading{float64(n)})
				if !errors.Is(err, tt.state) {
					t.Errorf("%s of %s: %v", name, tt.name, err)
				}
				want, wantErr := repo.Latest(t.Context(), roof)
				var got tsdb.Point[reading]
				var gotErr error
				n := reads(conn, func() { got, gotErr = repo.Latest(t.Context(), roof, tsdb.MaxStale(time.Minute)) })
				wantReads := tt.reads
				if tt.state == nil && (name == "writer" || name == "Delete") {
					wantReads = 1 // the writer retries; a deletion leaves nothing to cache
				}
				if got != want || !errors.Is(gotErr, wantErr) || n != wantReads {
					t.Errorf("after %s of %s: %v, %v with %d reads; want %v, %v with %d", name, tt.name, got, gotErr, n, want, wantErr, wantReads)
				}
			}
		}
	})
}

// TestExpiredIsNotServed: the cache does not serve a point from the moment at which it expires on the store's clock.
func TestExpiredIsNotServed(t *testing.T) {
	h1, h3 := gc.Class{Name: "h1", Policy: gc.MaxAge(time.Hour)}, gc.Class{Name: "h3", Policy: gc.MaxAge(3 * time.Hour)}
	written, before := readings(t, tsdb.SchemaOptions{Retention: h1, FormerClasses: []gc.Class{h3}}), readings(t, tsdb.SchemaOptions{Retention: h3, FormerClasses: []gc.Class{h1}})
	c := testkit.NewClock(start)
	opts := cached
	opts.Clock = c.Now
	store, conn := tsdbtest.Open(t, opts, written)
	repo := written.For(store, acme)
	putAll(t, before.For(store, acme), []tsdb.Point[reading]{{Entity: roof, Time: start.Add(-time.Minute), Value: reading{1}}})
	putAll(t, repo, []tsdb.Point[reading]{{Entity: roof, Time: start, Value: reading{2}}})
	old := tsdb.MaxStale(time.Hour)
	latest(t, conn, repo, roof, 2, 1, old)
	c.Set(start.Add(time.Hour))
	latest(t, conn, repo, roof, 2, 0, old)
	latest(t, conn, repo, roof, 2, 1)
	c.Set(start.Add(time.Hour + 1))
	latest(t, conn, repo, roof, 1, 1) // an older point was written in a class that keeps longer
	latest(t, conn, repo, roof, 1, 1, old)
	latest(t, conn, repo, roof, 1, 0, old)
	c.Set(start.Add(3*time.Hour - time.Minute + 1))
	for _, opts := range [][]tsdb.ReadOption{{old}, nil, {old}} {
		if p, err := repo.Latest(t.Context(), roof, opts...); !errors.Is(err, tsdb.ErrNotFound) {
			t.Errorf("Latest(%v) after expiry = %v, %v; want ErrNotFound", opts, p, err)
		}
	}
	if answers, err := latestMany(t.Context(), repo, []tsdb.Entity{roof}, old); err != nil || !errors.Is(answers[0].Err, tsdb.ErrNotFound) {
		t.Errorf("LatestMany after expiry = %v, %v; want a missing point", answers, err)
	}
}

// TestValuesAreTheCallersOwn: a caller may change its value; other callers do not see the change.
func TestValuesAreTheCallersOwn(t *testing.T) {
	type inner struct{ N []int }
	for _, tt := range []struct {
		name string
		run  func(t *testing.T, store *tsdb.Store)
	}{
		{"slice", func(t *testing.T, store *tsdb.Store) {
			checkOwnCopy(t, store, "slices", []int{1, 2}, func(v *[]int) { (*v)[0] = 9 })
		}},
		{"pointer", func(t *testing.T, store *tsdb.Store) {
			checkOwnCopy(t, store, "pointers", &reading{1}, func(v **reading) { (*v).TempC = 9 })
		}},
		{"map", func(t *testing.T, store *tsdb.Store) {
			checkOwnCopy(t, store, "maps", map[string]int{"a": 1}, func(v *map[string]int) { (*v)["a"] = 9 })
		}},
		{"slice within", func(t *testing.T, store *tsdb.Store) {
			checkOwnCopy(t, store, "structs", [1]inner{{[]int{1}}}, func(v *[1]inner) { v[0].N[0] = 9 })
		}},
		{"interface", func(t *testing.T, store *tsdb.Store) {
			checkOwnCopy(t, store, "any", any([]any{1.5}), func(v *any) { (*v).([]any)[0] = 9 })
		}},
		{"plain", func(t *testing.T, store *tsdb.Store) {
			type plain struct {
				At   time.Time
				Name string
				In   [2]struct{ N int }
			}
			checkOwnCopy(t, store, "plain", plain{At: start, Name: "a"}, func(v *plain) { v.In[0].N = 9 })
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			store, _ := tsdbtest.Open(t, cached)
			tt.run(t, store)
		})
	}
}

func checkOwnCopy[T any](t *testing.T, store *tsdb.Store, name string, v T, change func(*T)) {
	t.Helper()
	s, err := tsdb.Define(name, tsdb.Key("site", "device"), codec.JSON[T](), tsdb.SchemaOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	repo := s.For(store, acme)
	if err := errors.Join(store.Ensure(ctx, s), repo.Put(ctx, roof, start, v)); err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("%+v", must[tsdb.Point[T]](t)(repo.Latest(ctx, roof, tsdb.MaxStale(time.Hour))).Value)
	for range 3 {
		p := must[tsdb.Point[T]](t)(repo.Latest(ctx, roof, tsdb.MaxStale(time.Hour)))
		if got := fmt.Sprintf("%+v", p.Value); got != want {
			t.Errorf("got %s, want %s: another caller's change is visible", got, want)
		}
		change(&p.Value)
	}
	written := fmt.Sprintf("%+v", v)
	if err := repo.Put(ctx, roof, start.Add(time.Second), v); err != nil { // a value that was put is not shared either
		t.Fatal(err)
	}
	change(&v)
	if p := must[tsdb.Point[T]](t)(repo.Latest(ctx, roof, tsdb.MaxStale(time.Hour))); written != fmt.Sprintf("%+v", p.Value) && name != "pointers" {
		t.Errorf("got %+v, want the stored value %s", p.Value, written)
	}
}

// TestSchemasOfOneDatasetAgree: schemas with other types, or other orders of classes, share cached points of one dataset.
func TestSchemasOfOneDatasetAgree(t *testing.T) {
	one := readings(t, tsdb.SchemaOptions{})
	two, err := tsdb.Define("readings", tsdb.Key("site", "device"), codec.JSON[map[string]float64](), tsdb.SchemaOptions{})
	if err != nil {
		t.Fatal(err)
	}
	three := readings(t, tsdb.SchemaOptions{FormerClasses: []gc.Class{d90}})
	store, conn := tsdbtest.Open(t, cached, one)
	if err := store.Ensure(t.Context(), three); err != nil {
		t.Fatal(err)
	}
	old := tsdb.MaxStale(time.Hour)
	latest(t, conn, func() *tsdb.Repository[reading] {
		putAll(t, one.For(store, acme), []tsdb.Point[reading]{{Entity: roof, Time: start, Value: reading{1}}})
		return one.For(store, acme)
	}(), roof, 1, 1, old)
	for n := range 3 {
		v := float64(n + 2)
		if err := two.For(store, acme).Put(t.Context(), roof, start.Add(time.Duration(n)), map[string]float64{"temp_c": v}); err != nil {
			t.Fatal(err)
		}
		latest(t, conn, one.For(store, acme), roof, v, 0, old)
		if p, err := two.For(store, acme).Latest(t.Context(), roof, old); err != nil || p.Value["temp_c"] != v {
			t.Errorf("read as a map: %v, %v", p, err)
		}
	}
	latest(t, conn, three.For(store, acme), roof, 4, 1, old) // reads more classes than the others
	if err := one.For(store, acme).Put(t.Context(), roof, start.Add(time.Hour), reading{9}); err != nil {
		t.Fatal(err)
	}
	latest(t, conn, three.For(store, acme), roof, 9, 1, old)
}

// TestAnotherTenantIsRefusedBeforeTheCache: a call with another tenant's context is refused even if the point is cached.
func TestAnotherTenantIsRefusedBeforeTheCache(t *testing.T) {
	s := readings(t, tsdb.SchemaOptions{})
	store, conn := tsdbtest.Open(t, cached, s)
	repo := s.For(store, acme)
	putAll(t, repo, []tsdb.Point[reading]{{Entity: roof, Time: start, Value: reading{1}}})
	old := tsdb.MaxStale(time.Hour)
	latest(t, conn, repo, roof, 1, 1, old)
	foreign := tenant.NewContext(t.Context(), tenant.MustParse("acme2"))
	if p, err := repo.Latest(foreign, roof, old); !errors.Is(err, tsdb.ErrTenantMismatch) || p.Value != (reading{}) {
		t.Errorf("Latest = %v, %v; want ErrTenantMismatch", p, err)
	}
	if a, err := latestMany(foreign, repo, []tsdb.Entity{roof}, old); !errors.Is(err, tsdb.ErrTenantMismatch) || a != nil {
		t.Errorf("LatestMany = %v, %v; want ErrTenantMismatch", a, err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := repo.Latest(ended, roof, old); !errors.Is(err, context.Canceled) {
		t.Errorf("with an ended context: %v, want context.Canceled", err)
	}
}

// TestCachedAnswersStayInTheirTenant: entities, datasets and tenants with similar names get their own cached points.
func TestCachedAnswersStayInTheirTenant(t *testing.T) {
	for _, salts := range []int{0, 3} {
		var schemas []*tsdb.Schema[string]
		var datasets []tsdb.Dataset
		for _, name := range hostileDatasets {
			s := must[*tsdb.Schema[string]](t)(tsdb.Define(name, tsdb.Key("site", "device"), codec.String(), tsdb.SchemaOptions{Salts: salts}))
			schemas, datasets = append(schemas, s), append(datasets, s)
		}
		store, conn := tsdbtest.Open(t, cached, datasets...)
		fill(t, store, schemas)
		all := len(hostileTenants) * len(hostileDatasets) * len(hostileEntities)
		for round, want := range []int{all, 0} {
			n := reads(conn, func() {
				for _, id := range hostileTenants {
					for _, s := range schemas {
						for _, parts := range hostileEntities {
							p, err := s.For(store, tenant.MustParse(id)).Latest(t.Context(), tsdb.NewEntity(parts...), tsdb.MaxStale(time.Hour))
							if err != nil || p.Value != label(id, s.Name(), parts) {
								t.Fatalf("%s/%s/%q answers %v, %v", id, s.Name(), parts, p, err)
							}
						}
					}
				}
			})
			if n != want {
				t.Errorf("round %d: %d reads, want %d", round, n, want)
			}
		}
	}
}

func TestCacheOptionsAreChecked(t *testing.T) {
	s := readings(t, tsdb.SchemaOptions{})
	for field, o := range map[string]tsdb.CacheOptions{
		"Cache.Entries": {Entries: -1}, "Cache.Bytes": {Entries: 1, Bytes: -1}, "Cache.MaxAge": {Entries: 1, MaxAge: -1},
	} {
		_, err := tsdb.Open(t.Context(), tsdb.Config{StoreOptions: tsdb.StoreOptions{Cache: o}, Project: "p", Instance: "i", Table: "t"})
		var invalid *tsdb.InvalidError
		if !errors.Is(err, tsdb.ErrInvalid) || !errors.As(err, &invalid) || invalid.Field != field {
			t.Errorf("options %+v: error %v, want ErrInvalid", o, err)
		}
	}
	store, conn := tsdbtest.Open(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Cache: tsdb.CacheOptions{MaxAge: time.Second}}}, s) // a cache without entries
	if _, err := s.For(store, acme).Latest(t.Context(), roof, tsdb.MaxStale(-1)); !errors.Is(err, tsdb.ErrInvalid) || len(conn.Counts().Calls) > 0 {
		t.Errorf("MaxStale(-1): %v, want ErrInvalid", err)
	}
	if _, err := s.For(store, acme).Latest(t.Context(), roof, nil); !errors.Is(err, tsdb.ErrInvalid) {
		t.Errorf("a nil option: %v, want ErrInvalid", err)
	}
}
