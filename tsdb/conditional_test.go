package tsdb_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/internal/proof/testkit"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// TestFirstWinsIsCertainOfAnothers: points are never replaced, so if the response is lost and the row holds another
// value, that value won.
func TestFirstWinsIsCertainOfAnothers(t *testing.T) {
	s := readings(t, tsdb.SchemaOptions{FirstWins: true})
	store, conn := tsdbtest.Open(t, tsdbtest.Options{}, s)
	r := s.For(store, acme)
	if err := r.Put(t.Context(), roof, start, reading{1}); err != nil {
		t.Fatal(err)
	}
	conn.Inject(tsdbtest.LoseResponse(codes.Unavailable).On(tsdbtest.CheckAndMutateRow).Times(1))
	if ok, err := r.PutIfAbsent(t.Context(), roof, start, reading{2}); ok || err != nil {
		t.Errorf("PutIfAbsent = %v, %v; want false", ok, err)
	}
	conn.Inject(tsdbtest.LoseResponse(codes.Unavailable).On(tsdbtest.CheckAndMutateRow).Times(1))
	if err := r.Put(t.Context(), roof, start, reading{2}); !errors.Is(err, tsdb.ErrExists) || !errors.Is(err, tsdb.ErrRejected) {
		t.Errorf("Put: %v, want ErrExists", err)
	}
}

// TestEqualBytesOfAnotherClass: equal bytes in another class are another point, because it lives for another time.
func TestEqualBytesOfAnotherClass(t *testing.T) {
	d30 := gc.Class{Name: "d30", Policy: gc.MaxAge(30 * 24 * time.Hour)}
	c := testkit.NewClock(start)
	old := readings(t, tsdb.SchemaOptions{Retention: d30, FirstWins: true})
	s := readings(t, tsdb.SchemaOptions{Retention: d90, FormerClasses: []gc.Class{d30}, FirstWins: true})
	store, _ := tsdbtest.Open(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Clock: c.Now}}, s)
	if err := old.For(store, acme).Put(t.Context(), roof, start, reading{1}); err != nil {
		t.Fatal(err)
	}
	if err := s.For(store, acme).Put(t.Context(), roof, start, reading{1}); !errors.Is(err, tsdb.ErrExists) {
		t.Errorf("Put: %v, want ErrExists", err)
	}
}

// TestManyConditionalWrites: conditional writes of one call run in parallel, and end with the timeout of scans.
func TestManyConditionalWrites(t *testing.T) {
	longBubble(t, func(t *testing.T) {
		s := readings(t, tsdb.SchemaOptions{FirstWins: true})
		store, conn := tsdbtest.Open(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Timeouts: tsdb.Timeouts{Write: time.Minute, Scan: time.Second}}}, s)
		conn.Inject(tsdbtest.Delay(300 * time.Millisecond).On(tsdbtest.CheckAndMutateRow))
		begin := time.Now()
		if _, err := s.For(store, acme).PutMany(t.Context(), points(32)); err != nil || time.Since(begin) != 600*time.Millisecond {
			t.Errorf("PutMany: %v after %v", err, time.Since(begin))
		}
		begin = time.Now()
		late := points(160)
		for i := range late {
			late[i].Time = late[i].Time.Add(time.Hour)
		}
		out, err := s.For(store, acme).PutMany(t.Context(), late)
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(begin) > time.Second || out[159].State != tsdb.Rejected || out[159].Attempts != 0 {
			t.Errorf("PutMany: %v after %v, last outcome %+v", err, time.Since(begin), out[159])
		}
	})
}

// points returns n points of roof, a second apart.
func points(n int) []tsdb.Point[reading] {
	out := make([]tsdb.Point[reading], n)
	for i := range out {
		out[i] = tsdb.Point[reading]{Entity: roof, Time: start.Add(time.Duration(i) * time.Second)}
	}
	return out
}

// deletedBeforeRead returns a repository of a first-wins schema with a point of roof, which is deleted before the first
// read.
func deletedBeforeRead(t *testing.T) *tsdb.Repository[reading] {
	t.Helper()
	s := readings(t, tsdb.SchemaOptions{FirstWins: true})
	store, conn := tsdbtest.Open(t, tsdbtest.Options{}, s)
	repo := s.For(store, acme)
	if err := repo.Put(t.Context(), roof, start, reading{1}); err != nil {
		t.Fatal(err)
	}
	conn.Inject(tsdbtest.DelayBy(func() time.Duration {
		if err := repo.Delete(t.Context(), roof, start); err != nil {
			t.Error(err)
		}
		return 0
	}).On(tsdbtest.ReadRows).Times(1))
	return repo
}

// TestRowThatIsGoneAgain: a write that found its row occupied writes it, if the row is deleted before it can be read.
func TestRowThatIsGoneAgain(t *testing.T) {
	repo := deletedBeforeRead(t)
	if err := repo.Put(t.Context(), roof, start, reading{2}); err != nil {
		t.Errorf("Put: %v", err)
	}
	if p, err := repo.Get(t.Context(), roof, start); err != nil || p.Value.TempC != 2 {
		t.Errorf("Get = %v, %v", p, err)
	}
}

// TestPredicateMovesWithTheClock: a point that expires between two attempts is absent for the second.
func TestPredicateMovesWithTheClock(t *testing.T) {
	h1, keep := gc.Class{Name: "h1", Policy: gc.MaxAge(time.Hour)}, gc.Class{Name: "keep", Policy: gc.Never()}
	c := testkit.NewClock(start)
	old := readings(t, tsdb.SchemaOptions{Retention: h1, FormerClasses: []gc.Class{keep}})
	s := readings(t, tsdb.SchemaOptions{Retention: keep, FormerClasses: []gc.Class{h1}})
	store, conn := tsdbtest.Open(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Clock: c.Now}}, s)
	if err := old.For(store, acme).Put(t.Context(), roof, start, reading{1}); err != nil {
		t.Fatal(err)
	}
	c.Set(start.Add(time.Hour))
	conn.Inject(tsdbtest.Fail(codes.Unavailable).On(tsdbtest.CheckAndMutateRow).Times(1))
	conn.Inject(tsdbtest.DelayBy(func() time.Duration {
		c.Add(time.Millisecond)
		return 0
	}).On(tsdbtest.CheckAndMutateRow).Times(1))
	if stored, err := s.For(store, acme).PutIfAbsent(t.Context(), roof, start, reading{2}); !stored || err != nil {
		t.Errorf("PutIfAbsent = %v, %v; want true", stored, err)
	}
}

// TestPredicateIsExact: a point blocks PutIfAbsent until the exact end of its class's age, and not a millisecond later.
func TestPredicateIsExact(t *testing.T) {
	h1, keep := gc.Class{Name: "h1", Policy: gc.MaxAge(time.Hour)}, gc.Class{Name: "keep", Policy: gc.Never()}
	for _, tt := range []struct {
		late   time.Duration
		stored bool
	}{{0, false}, {time.Millisecond, true}} {
		c := testkit.NewClock(start)
		old := readings(t, tsdb.SchemaOptions{Retention: h1, FormerClasses: []gc.Class{keep}})
		s := readings(t, tsdb.SchemaOptions{Retention: keep, FormerClasses: []gc.Class{h1}})
		store, _ := tsdbtest.Open(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Clock: c.Now}}, s)
		if err := old.For(store, acme).Put(t.Context(), roof, start, reading{1}); err != nil {
			t.Fatal(err)
		}
		c.Set(start.Add(time.Hour + tt.late))
		if stored, err := s.For(store, acme).PutIfAbsent(t.Context(), roof, start, reading{2}); stored != tt.stored || err != nil {
			t.Errorf("%v after the end: PutIfAbsent = %v, %v; want %v", tt.late, stored, err, tt.stored)
		}
	}
}

// TestRowThatIsGoneWhenTimeIsOver: a row that blocked a write is deleted, and the time ends before the next attempt.
// Nothing is written, and the error must say so.
func TestRowThatIsGoneWhenTimeIsOver(t *testing.T) {
	longBubble(t, func(t *testing.T) {
		repo := deletedBeforeRead(t)
		begin := time.Now()
		ctx := late{t.Context(), func() bool { return time.Since(begin) > time.Millisecond }}
		if err := repo.Put(ctx, roof, start, reading{2}); !errors.Is(err, tsdb.ErrRejected) {
			t.Errorf("Put: %v, want ErrRejected", err)
		}
		if p, err := repo.Get(t.Context(), roof, start); !errors.Is(err, tsdb.ErrNotFound) {
			t.Errorf("Get = %v, %v", p, err)
		}
	})
}
