package tsdb_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"cloud.google.com/go/bigtable"
	"google.golang.org/grpc/codes"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/internal/store/tenancy"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tenants"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

var erasing = tenants.EraseOptions{Settle: 1, RowsPerSecond: -1}

// TestEachCallRefusesAnErasedTenant checks every call of a repository and of a sink, so that a new one cannot be
// forgotten. A tenant whose name only looks similar is not refused.
func TestEachCallRefusesAnErasedTenant(t *testing.T) {
	s, err := tsdb.Define("r", tsdb.Key("a", "b"), codec.String(), tsdb.SchemaOptions{Retention: gc.Class{Name: "keep", Policy: gc.Never()}})
	if err != nil {
		t.Fatal(err)
	}
	store, _ := tsdbtest.Open(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Cache: tsdb.CacheOptions{Entries: 100}}}, s)
	e := tsdb.NewEntity("x", "y")
	for _, n := range hostileTenants {
		if err := s.For(store, tenant.MustParse(n)).Put(t.Context(), e, start, n); err != nil {
			t.Fatal(err)
		}
	}
	gone := tenant.MustParse("a")
	if _, err := tenants.Erase(t.Context(), store, gone, erasing); err != nil {
		t.Fatal(err)
	}
	for _, n := range hostileTenants {
		repo := s.For(store, tenant.MustParse(n))
		if _, err := repo.Get(t.Context(), e, start); n == "a" != errors.Is(err, tsdb.ErrErased) || n != "a" && err != nil {
			t.Errorf("%s of another tenant: %v", n, err)
		}
	}
	repo := s.For(store, gone)
	for name, op := range operations {
		seen, err := op(t.Context(), repo, e, start)
		if !errors.Is(err, tsdb.ErrErased) || len(seen) > 0 {
			t.Errorf("%s of an erased tenant: read %v, %v; want ErrErased", name, seen, err)
		}
	}
	w := must[*tsdb.Writer](t)(store.NewWriter(tsdb.WriterOptions{Linger: -1}))
	for name, call := range sinkCalls {
		if err := call(t.Context(), repo.Via(w), e, start); !errors.Is(err, tsdb.ErrErased) {
			t.Errorf("Sink.%s of an erased tenant: %v, want ErrErased", name, err)
		}
	}
	if err := w.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestMarksThatCannotBeRead: a new store rejects all calls until it has read the marks. A store that has read them uses
// what it knows during an outage, and reads them again afterwards.
func TestMarksThatCannotBeRead(t *testing.T) {
	longBubble(t, func(t *testing.T) {
		s := readings(t, tsdb.SchemaOptions{})
		store, conn := tsdbtest.Open(t, tsdbtest.Options{}, s)
		client, _ := tsdbtest.Clients(t, conn)
		fresh := must[*tsdb.Store](t)(tsdb.New(client, tsdbtest.Table, tsdb.Options{}))
		defer fresh.Close()
		if err := s.For(store, acme).Put(t.Context(), roof, start, reading{1}); err != nil {
			t.Fatal(err)
		}
		conn.Inject(tsdbtest.Fail(codes.PermissionDenied).On(tsdbtest.ReadRows))
		if err := s.For(fresh, acme).Put(t.Context(), roof, start, reading{2}); !errors.Is(err, tsdb.ErrRejected) || !strings.Contains(err.Error(), "marks") {
			t.Errorf("Put in a store that has not read the marks: %v, want ErrRejected", err)
		}
		conn.Clear()
		if err := s.For(fresh, acme).Put(t.Context(), roof, start, reading{2}); err != nil {
			t.Errorf("Put: %v", err)
		}
		if _, err := tenants.Erase(t.Context(), store, acme, erasing); err != nil {
			t.Fatal(err)
		}
		time.Sleep(tenancy.ErasedWithin + time.Second)
		conn.Inject(tsdbtest.Fail(codes.Unavailable).On(tsdbtest.ReadRows))
		begin := time.Now()
		if err := s.For(fresh, acme).Put(t.Context(), roof, start, reading{3}); err != nil {
			t.Errorf("Put with the last known marks: %v", err)
		}
		if took := time.Since(begin); took > 5*time.Second {
			t.Errorf("Put waited %v", took)
		}
		if err := s.For(store, acme).Put(t.Context(), roof, start, reading{3}); !errors.Is(err, tsdb.ErrErased) {
			t.Errorf("Put: %v", err)
		}
		conn.Clear()
		time.Sleep(tenancy.ErasedWithin + time.Second)
		if err := s.For(fresh, acme).Put(t.Context(), roof, start, reading{3}); !errors.Is(err, tsdb.ErrErased) {
			t.Errorf("Put after the outage: %v", err)
		}
		conn.Inject(tsdbtest.Delay(time.Hour).On(tsdbtest.ReadRows))
		time.Sleep(tenancy.ErasedWithin + time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := s.For(fresh, acme).Put(ctx, roof, start, reading{3}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Put whose context ends while it waits: %v", err)
		}
		_ = fresh.Close() // while a read runs: the bubble would not end if it stayed
	})
}

// TestMarksAreReadAtMostOnceInAWhile: a store reads the marks with one request per interval, however many calls there
// are, and with none without calls.
func TestMarksAreReadAtMostOnceInAWhile(t *testing.T) {
	longBubble(t, func(t *testing.T) {
		s := readings(t, tsdb.SchemaOptions{})
		store, conn := tsdbtest.Open(t, tsdbtest.Options{}, s)
		repo := s.For(store, acme)
		for range 100 {
			for range 10 {
				go func() { _ = repo.Put(t.Context(), roof, start, reading{1}) }()
			}
			time.Sleep(time.Second)
		}
		synctest.Wait()
		if n := conn.Counts().Upkeep; n < 100/6-1 || n > 100/5 {
			t.Errorf("%d reads in 100 s, want about one for each interval", n)
		}
		conn.Reset()
		time.Sleep(time.Hour)
		if n := conn.Counts().Upkeep; n != 0 {
			t.Errorf("%d reads without a call, want 0", n)
		}
	})
}

// TestAMarkThatCannotBeUnderstood: a mark that does not decode blocks its own tenant and no other.
func TestAMarkThatCannotBeUnderstood(t *testing.T) {
	s := readings(t, tsdb.SchemaOptions{})
	_, conn, table := tsdbtest.OpenTable(t, tsdbtest.Options{}, s)
	for key, column := range map[string]map[string]string{
		"!erased#a":      {"m": "soon"},
		"!erased#b#hash": {"m": "", "e": "short"},
		"!erased#c":      {"m": "", "e": "0123456789abcdef"},
		"!erased#d":      {"json": "{}"}, // lifted
	} {
		for _, name := range slices.Sorted(maps.Keys(column)) {
			m := newMutation("_sys", name, column[name])
			apply(t, table, key, m)
		}
	}
	apply(t, table, "!erased", newMutation("_sys", "gen", "1"))
	client, _ := tsdbtest.Clients(t, conn)
	store := must[*tsdb.Store](t)(tsdb.New(client, tsdbtest.Table, tsdb.Options{}))
	defer store.Close()
	for name, refused := range map[string]bool{"a": true, "b": true, "c": true, "d": false, "e": false} {
		err := s.For(store, tenant.MustParse(name)).Put(t.Context(), roof, start, reading{1})
		if errors.Is(err, tsdb.ErrErased) != refused || !refused && err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// BenchmarkAdmit measures what each call pays for checking the marks.
func BenchmarkAdmit(b *testing.B) {
	s := readings(b, tsdb.SchemaOptions{})
	store, _ := tsdbtest.Open(b, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Cache: tsdb.CacheOptions{Entries: 100}}}, s)
	repo := s.For(store, acme)
	if err := repo.Put(b.Context(), roof, start, reading{1}); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := repo.Latest(b.Context(), roof, tsdb.MaxStale(time.Minute)); err != nil {
			b.Fatal(err)
		}
	}
}

func newMutation(family, column, value string) *bigtable.Mutation {
	m := bigtable.NewMutation()
	m.Set(family, column, 0, []byte(value))
	return m
}
