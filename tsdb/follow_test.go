package tsdb_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tenants"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// soon is shorter than any interval: no poll runs within it.
const soon = time.Millisecond

// hourlyPolls polls only at the start.
var hourlyPolls = tsdb.FollowOptions{Interval: time.Hour}

// TestOwnWritesArriveAtOnce: what this store stores arrives without a poll, whichever call stores it and however late
// it is.
func TestOwnWritesArriveAtOnce(t *testing.T) {
	for name, opts := range map[string]tsdb.SchemaOptions{
		"plain": {}, "salted": {Salts: 4}, "first wins": {FirstWins: true},
		"heads": {Head: tsdb.Head{Points: 3}, Precision: tsdb.Milliseconds}, "heads only": {Head: tsdb.Head{Points: 3, Only: true}, Precision: tsdb.Milliseconds},
	} {
		t.Run(name, func(t *testing.T) {
			followBubble(t, opts, func(w *world) {
				f := w.under(hourlyPolls)
				w.want(f, 3*time.Second)
				w.put(w.a, roof, 0, 1)
				w.put(w.a, roof, 100*time.Hour, 2)
				w.put(w.a, tsdb.NewEntity("berlin-2", "roof"), 0, 99)
				w.want(f, soon, 1, 2)
				now := time.Now()
				_, err := w.a.PutMany(w.Context(), []tsdb.Point[int64]{
					{Entity: roof, Time: now.Add(time.Second), Value: 3},
					{Entity: tsdb.NewEntity("paris", "x"), Time: now, Value: 99},
					{Entity: tsdb.NewEntity("berlin", "new"), Time: now, Value: 4},
				})
				w.ok(err)
				w.want(f, soon, 3, 4)
				written, err := w.a.PutIfAbsent(w.Context(), roof, now.Add(2*time.Second), 5)
				if err != nil || !written {
					t.Fatal(written, err)
				}
				if written, err = w.a.PutIfAbsent(w.Context(), roof, now.Add(2*time.Second), 99); written {
					t.Fatal("stored twice", err)
				}
				w.want(f, soon, 5)
				for _, options := range []tsdb.WriterOptions{{}, {Journal: tsdb.JournalOptions{Dir: t.TempDir()}}} {
					writer, err := w.own.NewWriter(options)
					w.ok(err)
					w.ok(w.a.Via(writer).Enqueue(w.Context(), tsdb.NewEntity("berlin", "sink"), time.Now(), 6))
					w.ok(writer.Flush(w.Context()))
					w.want(f, soon, 6)
					w.ok(writer.Close(w.Context()))
				}
				// A poll finds all of these again, and delivers none twice.
				w.want(f, 2*time.Hour)
			})
		})
	}
}

// TestMergedPoints: a merged point arrives with the fields of all writes, also those of another store.
func TestMergedPoints(t *testing.T) {
	longBubble(t, func(t *testing.T) {
		s := tsdb.MustDefine("states", tsdb.Key("device"), codec.Records(), tsdb.SchemaOptions{Merge: true})
		store, conn := tsdbtest.Open(t, tsdbtest.Options{}, s)
		client, _ := tsdbtest.Clients(t, conn)
		other, err := tsdb.New(client, tsdbtest.Table, tsdb.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer other.Close()
		e, now := tsdb.NewEntity("door"), time.Now()
		f, err := s.For(store, acme).Follow(t.Context(), e, tsdb.FollowOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		put := func(by *tsdb.Store, name string, v int64) {
			if err := s.For(by, acme).Put(t.Context(), e, now, codec.NewRecord(codec.Field{Name: name, Value: codec.Int(v)})); err != nil {
				t.Fatal(err)
			}
		}
		put(other, "a", 1)
		put(store, "b", 2)
		put(store, "b", 2) // changes nothing
		put(other, "c", 3)
		var got []string
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		for p, err := range f.Points(ctx) {
			if err == nil {
				var names []string
				for name := range p.Value.All() {
					names = append(names, name)
				}
				got = append(got, strings.Join(names, ""))
			}
		}
		if fmt.Sprint(got) != "[ab abc]" {
			t.Errorf("%v, want the merged point of each own write, and of the last of another store", got)
		}
	})
}

// TestPointsOfOthers are found by the next polls if they are not later than the lateness, once for each value.
func TestPointsOfOthers(t *testing.T) {
	for name, opts := range map[string]tsdb.SchemaOptions{
		"plain": {}, "salted": {Salts: 4}, "heads only": {Head: tsdb.Head{Points: 50, Only: true}, Precision: tsdb.Milliseconds},
	} {
		t.Run(name, func(t *testing.T) {
			followBubble(t, opts, func(w *world) {
				w.put(w.b, roof, time.Second, 98) // before the follower begins
				f := w.under(tsdb.FollowOptions{})
				at := w.put(w.b, roof, 0, 1)
				w.put(w.b, roof, 50*time.Second, 2)
				w.put(w.b, roof, time.Hour, 97) // too late
				w.put(w.b, tsdb.NewEntity("berlin", "new"), 0, 3)
				w.put(w.b, tsdb.NewEntity("berlin", "a"), 0, 4)
				w.put(w.b, tsdb.NewEntity("berlin-2", "a"), 0, 96)
				got := w.values(f, 5*time.Second)
				slices.Sort(got)
				if fmt.Sprint(got) != "[1 2 3 4]" {
					t.Fatalf("%v, want 1 to 4", got)
				}
				w.ok(w.b.Put(w.Context(), roof, at, 5))
				w.ok(w.b.Put(w.Context(), roof, at, 6))
				w.want(f, wholeSweep, 6) // of several values the last
				w.ok(w.b.Put(w.Context(), roof, at, 6))
				w.want(f, wholeSweep)
				gone := w.put(w.b, roof, 0, 95)
				w.ok(w.b.Delete(w.Context(), roof, gone))
				w.ok(w.b.Delete(w.Context(), roof, at))
				w.want(f, wholeSweep)
				w.ok(w.b.Put(w.Context(), roof, at, 7))
				w.want(f, wholeSweep, 7)
			})
		})
	}
}

// TestOlderReadsDoNotFollowNewerWrites: a poll that has read a value before this store replaced it does not deliver it
// afterwards.
func TestOlderReadsDoNotFollowNewerWrites(t *testing.T) {
	followBubble(t, tsdb.SchemaOptions{}, func(w *world) {
		f := w.under(tsdb.FollowOptions{Interval: time.Minute, Lateness: time.Hour})
		w.want(f, 3*time.Second)
		at := w.put(w.b, roof, 0, 1)
		w.conn.Inject(tsdbtest.Delay(10 * time.Second).On(tsdbtest.ReadRows)) // the answer, with 1 in it, is late
		go func() {
			time.Sleep(62 * time.Second)
			_ = w.a.Put(w.Context(), roof, at, 2)
		}()
		got := w.values(f, 10*time.Minute)
		if len(got) == 0 || got[len(got)-1] != 2 {
			t.Errorf("%v, want 2 at the end", got)
		}
	})
}

// TestSince: the points that are stored already come first.
func TestSince(t *testing.T) {
	followBubble(t, tsdb.SchemaOptions{}, func(w *world) {
		for i := range int64(5) {
			w.put(w.b, roof, time.Duration(5-i)*time.Hour, i)
		}
		f := w.under(tsdb.FollowOptions{Since: time.Now().Add(-3 * time.Hour)})
		w.put(w.a, roof, 0, 9)
		got := w.values(f, 5*time.Second)
		slices.Sort(got)
		if fmt.Sprint(got) != "[2 3 4 9]" {
			t.Errorf("%v, want 2, 3, 4 and 9", got)
		}
	})
}

// TestSlowLoop: a follower that takes nothing delays neither writes nor others. When it goes on, it misses only late
// points, and says so.
func TestSlowLoop(t *testing.T) {
	followBubble(t, tsdb.SchemaOptions{}, func(w *world) {
		slow, quick := w.under(hourlyPolls), w.under(hourlyPolls)
		w.want(slow, 3*time.Second)
		w.want(quick, 3*time.Second)
		const n = 3000
		began := time.Now()
		for i := range int64(n) {
			age := time.Duration(i) * time.Millisecond
			if i%100 == 0 {
				age = 10 * time.Hour
			}
			w.put(w.a, roof, age, i)
			if got := w.first(quick, 1); got[0].Value != i {
				t.Fatalf("the quick one has %d, want %d", got[0].Value, i)
			}
		}
		if took := time.Since(began); took > 0 {
			t.Fatalf("writing took %v of the simulated clock", took)
		}
		seen, missed := map[int64]int{}, 0
		ctx, cancel := context.WithTimeout(w.Context(), time.Second)
		defer cancel()
		for p, err := range slow.Points(ctx) {
			var lost *tsdb.MissedError
			switch {
			case errors.As(err, &lost):
				missed += lost.Points
				if !lost.Oldest.Equal(began.Add(-10*time.Hour)) || !lost.Newest.Equal(lost.Oldest) {
					t.Errorf("%v, want the time of the late points", lost)
				}
			case err == nil:
				seen[p.Value]++
			}
		}
		for i := range int64(n) {
			if late := i%100 == 0; late && seen[i] > 0 || !late && seen[i] != 1 {
				t.Fatalf("%d arrived %d times", i, seen[i])
			}
		}
		if missed != n/100 {
			t.Errorf("%d reported as missed, want %d", missed, n/100)
		}
	})
}

// TestContinuing: a follower that is killed at any point and continues elsewhere delivers all the rest, and nothing
// twice.
func TestContinuing(t *testing.T) {
	followBubble(t, tsdb.SchemaOptions{Salts: 2}, func(w *world) {
		f := w.under(tsdb.FollowOptions{})
		position := f.Cursor()
		w.ok(f.Close())
		var points []tsdb.Point[int64]
		for i := range 2500 {
			points = append(points, tsdb.Point[int64]{Entity: tsdb.NewEntity("berlin", fmt.Sprint("d", i%7)), Time: time.Now().Add(time.Duration(i) * time.Second), Value: int64(i)})
		}
		_, err := w.b.PutMany(w.Context(), points)
		w.ok(err)
		time.Sleep(time.Hour)
		seen := map[int64]bool{}
		for n := 1; len(seen) < len(points); n = 2*n + 1 {
			f, err := w.b.Under(berlin).Follow(w.Context(), tsdb.FollowOptions{After: position}) // in the other process
			w.ok(err)
			for _, p := range w.first(f, min(n, len(points)-len(seen))) {
				if seen[p.Value] {
					t.Fatalf("%d arrives twice, the second time in a run of %d", p.Value, n)
				}
				seen[p.Value] = true
			}
			position = f.Cursor()
			w.ok(f.Close())
		}
		w.want(w.under(tsdb.FollowOptions{After: position}), time.Minute)
	})
}

// TestPollsAreBounded: each poll costs a request for 125 entities, finds new ones among them, and reads only the
// window.
func TestPollsAreBounded(t *testing.T) {
	followBubble(t, tsdb.SchemaOptions{}, func(w *world) {
		var points []tsdb.Point[int64]
		for i := range 300 {
			for k := range 20 {
				points = append(points, tsdb.Point[int64]{Entity: tsdb.NewEntity("berlin", fmt.Sprintf("d%03d", i)), Time: time.Now().Add(-time.Hour * time.Duration(k+1)), Value: 1})
			}
		}
		_, err := w.b.PutMany(w.Context(), points)
		w.ok(err)
		f := w.under(tsdb.FollowOptions{Interval: time.Second})
		w.values(f, 500*time.Millisecond)
		w.put(w.b, tsdb.NewEntity("berlin", "d100"), 0, 2)
		w.conn.Reset()
		w.want(f, time.Second, 2)
		if c := w.conn.Counts(); c.Calls[tsdbtest.ReadRows] != 3 || c.RowsSeen > 10 {
			t.Errorf("a poll of 300 entities made %d requests and read %d rows, want 3 and few", c.Calls[tsdbtest.ReadRows], c.RowsSeen)
		}
		w.put(w.b, tsdb.NewEntity("berlin", "d100x"), 0, 3)
		w.conn.Reset()
		w.want(f, time.Second, 3)
		if c := w.conn.Counts(); c.Calls[tsdbtest.ReadRows] > 4 {
			t.Errorf("a poll that finds a new entity made %d requests, want at most one more", c.Calls[tsdbtest.ReadRows])
		}
		w.conn.Reset()
		time.Sleep(time.Hour) // outside of the loop
		if c := w.conn.Counts(); c.Calls[tsdbtest.ReadRows] != 0 {
			t.Errorf("%d requests outside of the loop", c.Calls[tsdbtest.ReadRows])
		}
	})
}

// TestCursorsAreBound: a cursor continues what it is from, and nothing else.
func TestCursorsAreBound(t *testing.T) {
	followBubble(t, tsdb.SchemaOptions{}, func(w *world) {
		f := w.under(tsdb.FollowOptions{})
		w.put(w.b, roof, 0, 1)
		w.want(f, 5*time.Second, 1)
		text := f.Cursor()
		_, err := w.a.Under(berlin).Follow(w.Context(), tsdb.FollowOptions{After: text})
		w.ok(err)
		for what, open := range map[string]func() error{
			"another tenant": func() error {
				_, err := w.schema.For(w.own, tenant.MustParse("acme2")).Under(berlin).Follow(w.Context(), tsdb.FollowOptions{After: text})
				return err
			},
			"another prefix": func() error {
				_, err := w.a.Under(tsdb.NewPrefix("berli")).Follow(w.Context(), tsdb.FollowOptions{After: text})
				return err
			},
			"all entities": func() error {
				_, err := w.a.Under(tsdb.AllEntities()).Follow(w.Context(), tsdb.FollowOptions{After: text})
				return err
			},
			"an entity": func() error {
				_, err := w.a.Follow(w.Context(), roof, tsdb.FollowOptions{After: text})
				return err
			},
			"a changed one": func() error {
				_, err := w.a.Under(berlin).Follow(w.Context(), tsdb.FollowOptions{After: text[:len(text)-1]})
				return err
			},
			"one of a page": func() error {
				w.put(w.a, roof, time.Second, 2)
				page, err := w.a.Page(w.Context(), roof, tsdb.AllTime(), 1, "")
				w.ok(err)
				_, err = w.a.Follow(w.Context(), roof, tsdb.FollowOptions{After: page.Next})
				return err
			},
		} {
			if err := open(); !errors.Is(err, tsdb.ErrCursor) {
				t.Errorf("%s: %v, want ErrCursor", what, err)
			}
		}
	})
}

// TestTenants: a follower never gets the points of another tenant, also if names and keys are alike.
func TestTenants(t *testing.T) {
	followBubble(t, tsdb.SchemaOptions{}, func(w *world) {
		mine, all := w.under(tsdb.FollowOptions{}), opened(w.a.Under(tsdb.AllEntities()).Follow(w.Context(), tsdb.FollowOptions{}))
		defer all.Close()
		for _, name := range []string{"acm", "acme2", "acme-"} {
			for _, by := range []*tsdb.Repository[int64]{w.a, w.b} {
				other := w.schema.For(by.Store(), tenant.MustParse(name))
				w.put(other, roof, 0, 99)
				w.put(other, tsdb.NewEntity("acme", "events"), 0, 99)
			}
		}
		w.want(mine, time.Minute)
		w.want(all, time.Minute)
		_, err := w.a.Under(berlin).Follow(tenant.NewContext(w.Context(), tenant.MustParse("acme2")), tsdb.FollowOptions{})
		if !errors.Is(err, tsdb.ErrTenantMismatch) {
			t.Errorf("%v, want ErrTenantMismatch", err)
		}
	})
}

// opened returns a follower that must have been opened.
func opened[V any](v V, err error) V {
	if err != nil {
		panic(err)
	}
	return v
}

// TestErasedTenant: what is queued, and what a poll would find, is not delivered once the tenant is erased.
func TestErasedTenant(t *testing.T) {
	followBubble(t, tsdb.SchemaOptions{}, func(w *world) {
		f := w.under(tsdb.FollowOptions{})
		w.put(w.a, roof, 0, 1)
		if _, err := tenants.Erase(w.Context(), w.own, acme, tenants.EraseOptions{}); err != nil {
			t.Fatal(err)
		}
		for p, err := range f.Points(w.Context()) {
			if !errors.Is(err, tsdb.ErrErased) {
				t.Errorf("%v, %v; want ErrErased", p, err)
				break
			}
		}
	})
}

// TestExpiredPoints that wait in the queue are not delivered any more.
func TestExpiredPoints(t *testing.T) {
	followBubble(t, tsdb.SchemaOptions{Retention: gc.Class{Name: "h1", Policy: gc.MaxAge(time.Hour)}}, func(w *world) {
		f := w.under(tsdb.FollowOptions{})
		w.put(w.a, roof, 0, 1)
		w.put(w.a, roof, 30*time.Minute, 2)
		time.Sleep(45 * time.Minute)
		w.want(f, time.Second, 1)
	})
}

// TestFailingPolls: a poll is repeated while the service is away, own writes go on, and in the end the loop says why.
func TestFailingPolls(t *testing.T) {
	followBubbleWith(t, tsdb.SchemaOptions{}, tsdb.StoreOptions{Timeouts: tsdb.Timeouts{Scan: time.Second}}, func(w *world) {
		f := w.under(tsdb.FollowOptions{})
		w.want(f, 3*time.Second)
		w.conn.Inject(tsdbtest.Fail(codes.Unavailable).On(tsdbtest.ReadRows))
		w.put(w.a, roof, 0, 1)
		began := time.Now()
		var got []int64
		for p, err := range f.Points(w.Context()) {
			if err != nil {
				break
			}
			got = append(got, p.Value)
		}
		if took := time.Since(began); fmt.Sprint(got) != "[1]" || took < 20*time.Second || took > 5*time.Minute {
			t.Errorf("%v and the error after %v", got, took)
		}
		w.conn.Clear()
		w.put(w.b, roof, 0, 2)
		w.want(f, 2*time.Minute, 2)
	})
}

// TestPollsAreCheap: while a fleet sends, a follower reads each point a few times, and not in each poll of the
// lateness. A late point of another process is delivered within a quarter of the lateness, and nothing is delivered
// twice.
func TestPollsAreCheap(t *testing.T) {
	followBubble(t, tsdb.SchemaOptions{}, func(w *world) {
		f := w.under(tsdb.FollowOptions{Interval: time.Second})
		seen := map[int64]int{}
		w.conn.Reset()
		const vehicles, seconds = 10, 120
		for n := range int64(seconds) {
			for i := range int64(vehicles) {
				w.put([]*tsdb.Repository[int64]{w.a, w.b}[i%2], tsdb.NewEntity("berlin", fmt.Sprint("d", i)), 0, n*vehicles+i)
			}
			for _, v := range w.values(f, time.Second) {
				seen[v]++
			}
		}
		if read := w.conn.Counts().RowsReturned; read > 10*vehicles*seconds {
			t.Errorf("%d rows were read for %d points", read, vehicles*seconds)
		}
		for v := range int64(vehicles * (seconds - 2)) {
			if seen[v] != 1 {
				t.Errorf("%d arrived %d times", v, seen[v])
			}
		}
		w.values(f, 2*time.Second)
		w.put(w.b, roof, 55*time.Second, -1)
		w.want(f, wholeSweep, -1)
	})
}
