package tsdb_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/internal/proof/testkit"
	"github.com/tidemark-go/tidemark/internal/store/tenancy"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tenants"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

const day = 24 * time.Hour

var (
	week  = gc.Class{Name: "d7", Policy: gc.MaxAge(7 * day)}
	month = gc.Class{Name: "d30", Policy: gc.MaxAge(30 * day)}
)

// choosing returns a schema whose tenants can be in two classes.
func choosing(t testing.TB, opts tsdb.SchemaOptions) *tsdb.Schema[string] {
	t.Helper()
	opts.Retention, opts.Classes, opts.Precision = week, []gc.Class{month}, tsdb.Milliseconds
	s, err := tsdb.Define("r", tsdb.Key("a", "b"), codec.String(), opts)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// assign stores a profile with a class, and waits until all stores apply it.
func assign(t testing.TB, store *tsdb.Store, id tenant.ID, p tenants.Profile) {
	t.Helper()
	if _, err := tenants.Onboard(t.Context(), store, id, p, tenants.OnboardOptions{Replace: true}); err != nil {
		t.Fatal(err)
	}
	time.Sleep(tenancy.ClassesWithin + time.Millisecond)
}

// written holds the points that a tenant has written, and how long each lives.
type written map[time.Time]time.Duration

func (w written) visible(now time.Time) (out []time.Time) {
	for at, age := range w {
		if !at.Before(now.Add(-age)) {
			out = append(out, at)
		}
	}
	slices.SortFunc(out, func(a, b time.Time) int { return b.Compare(a) })
	return out
}

// ways are the ways to write a point.
var ways = map[string]func(t testing.TB, r *tsdb.Repository[string], e tsdb.Entity, at time.Time) error{
	"Put": func(t testing.TB, r *tsdb.Repository[string], e tsdb.Entity, at time.Time) error {
		return r.Put(t.Context(), e, at, "x")
	},
	"PutIfAbsent": func(t testing.TB, r *tsdb.Repository[string], e tsdb.Entity, at time.Time) error {
		stored, err := r.PutIfAbsent(t.Context(), e, at, "x")
		if err == nil && !stored {
			return errors.New("it was there")
		}
		return err
	},
	"PutMany": func(t testing.TB, r *tsdb.Repository[string], e tsdb.Entity, at time.Time) error {
		_, err := r.PutMany(t.Context(), []tsdb.Point[string]{{Entity: e, Time: at, Value: "x"}})
		return err
	},
	"Writer": func(t testing.TB, r *tsdb.Repository[string], e tsdb.Entity, at time.Time) error {
		w, err := r.Store().NewWriter(tsdb.WriterOptions{})
		if err != nil {
			return err
		}
		_, err = r.Via(w).EnqueueMany(t.Context(), []tsdb.Point[string]{{Entity: e, Time: at, Value: "x"}})
		return errors.Join(err, w.Close(t.Context()))
	},
	"journal": func(t testing.TB, r *tsdb.Repository[string], e tsdb.Entity, at time.Time) error {
		var failed error
		w, err := r.Store().NewWriter(tsdb.WriterOptions{
			Journal:   tsdb.JournalOptions{Dir: t.TempDir()},
			OnFailure: func(u tsdb.Undelivered) { failed = u.Outcome.Err },
		})
		if err != nil {
			return err
		}
		return errors.Join(r.Via(w).Enqueue(t.Context(), e, at, "x"), w.Close(t.Context()), failed)
	},
}

// shows compares every kind of read with the wanted points of an entity, the only one of its tenant.
func shows(t *testing.T, r *tsdb.Repository[string], e tsdb.Entity, want []time.Time, most int) {
	t.Helper()
	ctx := t.Context()
	if most > 0 {
		want = want[:min(most, len(want))]
	}
	same := func(call string, points []tsdb.Point[string], want []time.Time, err error) {
		t.Helper()
		var got []time.Time
		for _, p := range points {
			got = append(got, p.Time)
		}
		if err != nil || !slices.EqualFunc(got, want, time.Time.Equal) {
			t.Errorf("%s of %s = %v, %v, want %v", call, r.Tenant(), got, err, want)
		}
	}
	one := func(call string, p tsdb.Point[string], want []time.Time, err error) {
		t.Helper()
		if errors.Is(err, tsdb.ErrNotFound) {
			same(call, nil, want, nil)
			return
		}
		same(call, []tsdb.Point[string]{p}, want, err)
	}
	newest := want[:min(1, len(want))]
	for _, opt := range [][]tsdb.ReadOption{nil, {tsdb.MaxStale(1)}, {tsdb.MaxStale(time.Hour)}} {
		p, err := r.Latest(ctx, e, opt...)
		one("Latest", p, newest, err)
		answers, err := latestMany(ctx, r, []tsdb.Entity{e}, opt...)
		one("LatestMany", answers[0].Point, newest, errors.Join(err, answers[0].Err))
	}
	points, err := r.LatestN(ctx, e, 100)
	same("LatestN", points, want, err)
	for n := 1; n < 5; n++ {
		histories, err := r.LatestMany(ctx, []tsdb.Entity{e}, n)
		same(fmt.Sprint("LatestMany of ", n), histories[0].Points, want[:min(n, len(want))], errors.Join(err, histories[0].Err))
	}
	points, err = collect(r.Under(tsdb.NewPrefix(e.Parts()[0])).Latest(ctx))
	same("Under.Latest", points, newest, err)
	points, err = collect(r.Range(ctx, e, tsdb.AllTime()))
	same("Range", points, want, err)
	page, err := r.Page(ctx, e, tsdb.AllTime(), 100, "")
	same("Page", page.Points, want, err)
	count := 0
	hours, err := window.New[string](window.Every(time.Hour), []window.Measure[string]{{Name: "n", Of: func(string) (float64, bool) { return 1, true }}}, window.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for b, err := range hours.Read(ctx, r, e, tsdb.AllTime(), tsdb.NewestFirst) {
		if err != nil {
			t.Fatal(err)
		}
		count += int(b.Points)
	}
	if count != len(want) {
		t.Errorf("a window counts %d points, want %d", count, len(want))
	}
	for _, at := range want {
		p, err := r.Get(ctx, e, at)
		one("Get", p, []time.Time{at}, err)
	}
}

// TestATenantMovesBetweenClasses moves a tenant from 7 days to 30 and back. With every way of writing, each point lives
// as long as the class that it was written in, in every read; other tenants are not affected.
func TestATenantMovesBetweenClasses(t *testing.T) {
	for name, opts := range map[string]tsdb.SchemaOptions{
		"points": {},
		"salted": {Salts: 3},
		"first":  {FirstWins: true},
		"heads":  {Head: tsdb.Head{Points: 3}},
		"firsts": {Head: tsdb.Head{Points: 3}, FirstWins: true},
		"only":   {Head: tsdb.Head{Points: 3, Only: true}},
	} {
		t.Run(name, func(t *testing.T) {
			testkit.OneOf(t, name == "firsts")
			longBubble(t, func(t *testing.T) {
				s := choosing(t, opts)
				c := testkit.NewClock(start)
				store, _ := tsdbtest.Open(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Clock: c.Now, Cache: tsdb.CacheOptions{Entries: 100, MaxAge: time.Hour}}}, s)
				moved := s.For(store, tenant.MustParse("a"))
				neighbours := []*tsdb.Repository[string]{s.For(store, tenant.MustParse("ab")), s.For(store, tenant.MustParse("a-"))}
				e := tsdb.NewEntity("x", "y")
				assign(t, store, neighbours[1].Tenant(), tenants.Profile{Name: "named, in no class"})
				all, theirs, age := written{}, written{}, 7*day
				most := 0
				if opts.Head.Only {
					most = opts.Head.Points
				}
				var names []string
				for way := range ways {
					names = append(names, way)
				}
				slices.Sort(names)
				for n := range 60 { // days
					switch n {
					case 5:
						assign(t, store, moved.Tenant(), tenants.Profile{Retention: "d30"})
						age = 30 * day
					case 15:
						assign(t, store, moved.Tenant(), tenants.Profile{Retention: "d30", Classes: map[string]string{"r": "d7"}})
						age = 7 * day
					}
					if n < 22 {
						at := c.Now()
						way := names[n%len(names)]
						if err := ways[way](t, moved, e, at); err != nil {
							t.Fatalf("day %d, %s: %v", n, way, err)
						}
						all[at], theirs[at] = age, 7*day
						for _, r := range neighbours {
							if err := ways[way](t, r, e, at); err != nil {
								t.Fatalf("day %d, %s: %v", n, way, err)
							}
						}
					}
					shows(t, moved, e, all.visible(c.Now()), most)
					for _, r := range neighbours {
						shows(t, r, e, theirs.visible(c.Now()), most)
					}
					c.Add(day / 2)
					shows(t, moved, e, all.visible(c.Now()), most)
					c.Add(day / 2)
				}
			})
		})
	}
}

func collect(seq func(func(tsdb.Point[string], error) bool)) (out []tsdb.Point[string], err error) {
	for p, err := range seq {
		if err != nil {
			return out, err
		}
		out = append(out, p)
	}
	return out, nil
}

// TestHeadsThatLostWhatOutlives: points of a 30 day class that newer points of a 7 day class pushed out of the head
// become the newest when those expire. Heads are read in one request; only entities whose heads may lack points are
// read from their points.
func TestHeadsThatLostWhatOutlives(t *testing.T) {
	longBubble(t, func(t *testing.T) {
		s := choosing(t, tsdb.SchemaOptions{Head: tsdb.Head{Points: 1}})
		c := testkit.NewClock(start)
		store, conn := tsdbtest.Open(t, tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Clock: c.Now}}, s)
		repo := s.For(store, acme)
		at := func(n int) time.Time { return start.Add(time.Duration(n) * day) }
		put := func(e tsdb.Entity, days ...int) {
			t.Helper()
			var points []tsdb.Point[string]
			for _, n := range days {
				c.Set(at(max(n, int(c.Now().Sub(start)/day))))
				points = append(points, tsdb.Point[string]{Entity: e, Time: at(n), Value: "x"})
			}
			if _, err := repo.PutMany(t.Context(), points); err != nil {
				t.Fatal(err)
			}
		}
		newest := func(reads int, want ...int) {
			t.Helper()
			conn.Reset()
			answers, err := latestMany(t.Context(), repo, []tsdb.Entity{tsdb.NewEntity("x", "1"), tsdb.NewEntity("x", "2"), tsdb.NewEntity("x", "3")})
			if err != nil {
				t.Fatal(err)
			}
			for i, a := range answers {
				if a.Err != nil || !a.Point.Time.Equal(at(want[i])) {
					t.Errorf("on day %v: entity %d is %v, %v, want day %d", c.Now(), i+1, a.Point, a.Err, want[i])
				}
			}
			if n := conn.Counts().Calls[tsdbtest.ReadRows]; n != reads {
				t.Errorf("%d reads, want %d", n, reads)
			}
			under, err := collect(repo.Under(tsdb.NewPrefix("x")).Latest(t.Context()))
			if err != nil || len(under) != 3 {
				t.Fatal(under, err)
			}
			for i, p := range under {
				if !p.Time.Equal(at(want[i])) {
					t.Errorf("under: entity %d is %v, want day %d", i+1, p, want[i])
				}
			}
		}
		one, two, three := tsdb.NewEntity("x", "1"), tsdb.NewEntity("x", "2"), tsdb.NewEntity("x", "3")
		assign(t, store, acme, tenants.Profile{Retention: "d30"})
		put(one, 10)
		put(two, 10)
		assign(t, store, acme, tenants.Profile{})
		put(one, 11, 12)
		put(two, 11, 12)
		assign(t, store, acme, tenants.Profile{Retention: "d30"})
		put(two, 5) // older than the others, but still in the head
		put(three, 12)
		newest(1, 12, 12, 12)
		put(three, 20)
		newest(3, 10, 10, 20) // one head shows nothing, one shows a point older than the newest
	})
}
