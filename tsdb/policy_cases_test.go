package tsdb_test

import (
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/internal/proof/testkit"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tenants"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// TestAPredicateOnAHeadGoesByEachClass: in a dataset with heads only, a point that has expired in its own class does
// not block PutIfAbsent into a class that keeps longer.
func TestAPredicateOnAHeadGoesByEachClass(t *testing.T) {
	schema := func(now gc.Class, older ...gc.Class) *tsdb.Schema[string] {
		return tsdb.MustDefine("r", tsdb.Key("a", "b"), codec.String(), tsdb.SchemaOptions{
			Retention: now, FormerClasses: older, Precision: tsdb.Milliseconds, Head: tsdb.Head{Points: 3, Only: true},
		})
	}
	before, after := schema(week), schema(month, week)
	c := testkit.NewClock(start)
	store, _ := tsdbtest.Open(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Clock: c.Now}}, before)
	if err := before.For(store, acme).Put(t.Context(), roof, start, "short"); err != nil {
		t.Fatal(err)
	}
	if err := store.Ensure(t.Context(), after); err != nil {
		t.Fatal(err)
	}
	repo := after.For(store, acme)
	c.Set(start.Add(7 * day))
	if stored, err := repo.PutIfAbsent(t.Context(), roof, start, "long"); err != nil || stored {
		t.Errorf("PutIfAbsent of a stored point = %v, %v; want false", stored, err)
	}
	c.Add(time.Millisecond)
	if stored, err := repo.PutIfAbsent(t.Context(), roof, start, "long"); err != nil || !stored {
		t.Errorf("PutIfAbsent of an expired point = %v, %v; want true", stored, err)
	}
	if p, err := repo.Latest(t.Context(), roof); err != nil || p.Value != "long" {
		t.Errorf("Latest = %v, %v", p, err)
	}
}

// TestTheFirstWriteInAnotherClass: a first-wins point that is written again after its tenant changed class is
// recognised as its own, between all classes that the schema offers. A point in a former class belongs to another
// write.
func TestTheFirstWriteInAnotherClass(t *testing.T) {
	year := gc.Class{Name: "d365", Policy: gc.MaxAge(365 * day)}
	longBubble(t, func(t *testing.T) {
		before := tsdb.MustDefine("r", tsdb.Key("a", "b"), codec.String(), tsdb.SchemaOptions{Retention: year, FirstWins: true, Precision: tsdb.Milliseconds})
		store, _ := tsdbtest.Open(t, tsdbtest.Options{}, before)
		at := time.Now()
		if err := before.For(store, acme).Put(t.Context(), roof, at, "x"); err != nil {
			t.Fatal(err)
		}
		s := choosing(t, tsdb.SchemaOptions{FirstWins: true, FormerClasses: []gc.Class{year}})
		if err := store.Ensure(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		repo := s.For(store, acme)
		if err := repo.Put(t.Context(), roof, at, "x"); !errors.Is(err, tsdb.ErrExists) {
			t.Errorf("a point stored in a former class: %v, want ErrExists", err)
		}
		for i, from := range []string{"d7", "d30"} {
			at := at.Add(time.Duration(i+1) * time.Second)
			for _, class := range []string{from, "d7", "d30"} {
				assign(t, store, acme, tenants.Profile{Retention: class})
				if err := repo.Put(t.Context(), roof, at, "x"); err != nil {
					t.Errorf("from %s, written again in %s: %v", from, class, err)
				}
				if err := repo.Put(t.Context(), roof, at, "y"); !errors.Is(err, tsdb.ErrExists) {
					t.Errorf("from %s, another value in %s: %v, want ErrExists", from, class, err)
				}
			}
		}
	})
}

// TestAWriterRefusesByTheClassThatIsKnown: Enqueue rejects a point that has expired in its tenant's class, once the
// store knows the classes.
func TestAWriterRefusesByTheClassThatIsKnown(t *testing.T) {
	longBubble(t, func(t *testing.T) {
		s := choosing(t, tsdb.SchemaOptions{})
		store, _ := tsdbtest.Open(t, tsdbtest.Options{}, s)
		repo := s.For(store, acme)
		if err := repo.Put(t.Context(), roof, time.Now(), "x"); err != nil {
			t.Fatal(err)
		}
		w := writer(t, store, tsdb.WriterOptions{})
		if err := repo.Via(w).Enqueue(t.Context(), roof, time.Now().Add(-10*day), "x"); !errors.Is(err, tsdb.ErrExpired) {
			t.Errorf("Put of a point that expired in the 7 day class: %v", err)
		}
	})
}

// TestHeadsThatShowTooFew: a head of two points shows the newest one. It lost the second newest before another point
// expired.
func TestHeadsThatShowTooFew(t *testing.T) {
	longBubble(t, func(t *testing.T) {
		s := choosing(t, tsdb.SchemaOptions{Head: tsdb.Head{Points: 2}})
		c := testkit.NewClock(start)
		store, conn := tsdbtest.Open(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Clock: c.Now}}, s)
		repo := s.For(store, acme)
		lost, moved, newest := start.Add(-2*time.Hour), start.Add(-time.Hour), start.Add(3*day)
		put := func(at time.Time) {
			t.Helper()
			if err := repo.Put(t.Context(), roof, at, "x"); err != nil {
				t.Fatal(err)
			}
		}
		assign(t, store, acme, tenants.Profile{Retention: "d30"})
		for _, at := range []time.Time{lost, moved, newest} {
			put(at)
		}
		collectHeads(t, conn)
		assign(t, store, acme, tenants.Profile{})
		put(moved)
		c.Set(moved.Add(7*day + time.Millisecond))
		histories, err := repo.LatestMany(t.Context(), []tsdb.Entity{roof}, 2)
		if err != nil {
			t.Fatal(err)
		}
		if p := histories[0].Points; len(p) != 2 || !p[0].Time.Equal(newest) || !p[1].Time.Equal(lost) {
			t.Errorf("LatestMany = %v, want the points of %v and %v", p, newest, lost)
		}
	})
}

// TestHeadsWhilePointsExpire: if a point expires between the start of a call and the read of its head, no older point
// takes the place of one that the head has lost.
func TestHeadsWhilePointsExpire(t *testing.T) {
	longBubble(t, func(t *testing.T) {
		s := choosing(t, tsdb.SchemaOptions{Head: tsdb.Head{Points: 2}})
		var left atomic.Int64 // reads of the clock until it moves
		var before, after atomic.Pointer[time.Time]
		at := func(now, then time.Time) { before.Store(&now); after.Store(&then) }
		at(start, start)
		store, conn := tsdbtest.Open(t, tsdbtest.Options{
			StoreOptions: tsdb.StoreOptions{Clock: func() time.Time {
				if left.Add(-1) >= 0 {
					return *before.Load()
				}
				return *after.Load()
			}},
		}, s)
		repo := s.For(store, acme)
		moved, newest := start.Add(-time.Hour), start.Add(3*day)
		lost, older := moved.Add(-2*time.Millisecond), moved.Add(-3*time.Millisecond)
		put := func(at time.Time) {
			t.Helper()
			if err := repo.Put(t.Context(), roof, at, "x"); err != nil {
				t.Fatal(err)
			}
		}
		assign(t, store, acme, tenants.Profile{Retention: "d30"})
		for _, at := range []time.Time{lost, moved, newest} {
			put(at)
		}
		collectHeads(t, conn)
		put(older)
		assign(t, store, acme, tenants.Profile{})
		put(moved)
		at(moved.Add(7*day-10*time.Millisecond), moved.Add(7*day+time.Millisecond))
		for looks := range int64(12) {
			left.Store(looks)
			histories, err := repo.LatestMany(t.Context(), []tsdb.Entity{roof}, 2)
			if err != nil {
				t.Fatal(err)
			}
			if p := histories[0].Points; len(p) != 2 || !p[0].Time.Equal(newest) || !p[1].Time.Equal(lost) && !p[1].Time.Equal(moved) {
				t.Errorf("the clock moves after %d reads of it: %v, want the points of %v and of %v, or %v as long as it is visible", looks, p, newest, lost, moved)
			}
		}
	})
}
