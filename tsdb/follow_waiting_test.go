package tsdb_test

import (
	"bytes"
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/internal/proof/testkit"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/transfer"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// TestImportedPoints arrive at once, however old they are.
func TestImportedPoints(t *testing.T) {
	for name, opts := range map[string]tsdb.SchemaOptions{"plain": {}, "identity": {Identity: true}, "heads": {Head: tsdb.Head{Points: 2}, Precision: tsdb.Milliseconds}} {
		t.Run(name, func(t *testing.T) {
			followBubble(t, opts, func(w *world) {
				for i := range int64(3) {
					w.put(w.b.WithID(map[bool]string{true: "x"}[opts.Identity]), roof, 100*time.Hour-time.Duration(i)*time.Second, i)
				}
				var file bytes.Buffer
				_, err := transfer.Export(w.Context(), w.b.Store(), acme, &file, transfer.ExportOptions{})
				w.ok(err)
				f := w.under(hourlyPolls)
				w.want(f, 3*time.Second)
				_, err = transfer.Import(w.Context(), w.own, acme, &file, transfer.ImportOptions{})
				w.ok(err)
				seen := map[int64]int{}
				for _, v := range w.values(f, soon) {
					seen[v]++
				}
				if fmt.Sprint(seen) != "map[0:1 1:1 2:1]" {
					t.Errorf("of three imported points these arrive: %v", seen)
				}
			})
		})
	}
}

// TestFollowersKeepToTheirTenant: with views, followers read through the tenant's view, and get no points of others.
func TestFollowersKeepToTheirTenant(t *testing.T) {
	longBubble(t, func(t *testing.T) {
		schema := tsdb.MustDefine("events", tsdb.Key("site", "device"), codec.Int64(), tsdb.SchemaOptions{})
		acme2 := tenant.MustParse("acme2")
		own, conn := tsdbtest.Open(t, tsdbtest.Options{ViewsFor: []tenant.ID{acme, acme2}}, schema)
		client, _ := tsdbtest.Clients(t, conn)
		other, err := tsdb.New(client, tsdbtest.Table, tsdb.Options{StoreOptions: tsdb.StoreOptions{Views: true}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = other.Close() })
		w := &world{T: t, schema: schema, own: own, conn: conn, a: schema.For(own, acme), b: schema.For(other, acme), start: time.Now()}
		f := w.under(tsdb.FollowOptions{})
		one := opened(w.a.Follow(w.Context(), roof, tsdb.FollowOptions{}))
		defer one.Close()
		for _, by := range []*tsdb.Store{own, other} {
			w.put(schema.For(by, acme2), roof, 0, 99)
		}
		w.put(w.a, roof, 0, 1)
		w.put(w.b, roof, 0, 2)
		w.put(w.b, tsdb.NewEntity("berlin", "new"), 0, 3)
		for f, want := range map[*tsdb.Follower[int64]]string{f: "map[1:1 2:1 3:1]", one: "map[1:1 2:1]"} {
			seen := map[int64]int{}
			for _, v := range w.values(f, 5*time.Second) {
				seen[v]++
			}
			if fmt.Sprint(seen) != want {
				t.Errorf("%v arrive, want %s", seen, want)
			}
		}
	})
}

// TestManyPointsWait: more points than a follower remembers have arrived at once, from this store and from another.
// Each is delivered once, and then new ones are.
func TestManyPointsWait(t *testing.T) {
	if testkit.Raced {
		t.Skip("70,000 points take a minute under the race detector")
	}
	followBubble(t, tsdb.SchemaOptions{}, func(w *world) {
		f := w.under(tsdb.FollowOptions{})
		w.want(f, 3*time.Second)
		const n = 70_000
		now := time.Now()
		points := make([]tsdb.Point[int64], 0, n)
		for i := range n { // 40 seconds of 7 devices
			at := now.Add(-time.Duration(n-i) * 40 * time.Second / n)
			points = append(points, tsdb.Point[int64]{Entity: tsdb.NewEntity("berlin", fmt.Sprint("d", i%7)), Time: at, Value: int64(i)})
		}
		_, err := w.b.PutMany(w.Context(), points[:n/2])
		w.ok(err)
		_, err = w.a.PutMany(w.Context(), points[n/2:])
		w.ok(err)
		seen := make([]bool, n)
		ctx, cancel := context.WithTimeout(w.Context(), 10*time.Minute)
		defer cancel()
		delivered := 0
		for p, err := range f.Points(ctx) {
			if err != nil {
				break
			}
			if seen[p.Value] {
				t.Fatalf("%d arrives twice", p.Value)
			}
			seen[p.Value] = true
			delivered++
		}
		if delivered != n {
			t.Errorf("%d of %d points arrived", delivered, n)
		}
		w.put(w.b, roof, 0, 1)
		w.want(f, 5*time.Second, 1)
	})
}

// TestClockSetBack: once a clock that was ahead is right again, points of other processes are found, and nothing is
// delivered twice.
func TestClockSetBack(t *testing.T) {
	var ahead atomic.Int64
	ahead.Store(int64(time.Hour))
	clock := func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	followBubbleWith(t, tsdb.SchemaOptions{}, tsdb.StoreOptions{Clock: clock}, func(w *world) {
		f := w.under(tsdb.FollowOptions{})
		w.put(w.a, roof, -time.Hour, 1)
		w.put(w.b, roof, -time.Hour+time.Second, 2)
		w.put(w.b, roof, 0, 98) // an hour late by the clock
		w.want(f, 5*time.Second, 1, 2)
		position := f.Cursor()
		ahead.Store(0)
		w.want(f, 5*time.Second)
		w.put(w.b, roof, 10*time.Second, 3)
		w.put(w.a, roof, 0, 4)
		w.want(f, wholeSweep, 4, 3)
		w.want(f, 2*time.Hour)
		w.put(w.b, roof, 0, 5)
		w.want(f, 5*time.Second, 5)
		if _, err := w.a.Under(berlin).Follow(w.Context(), tsdb.FollowOptions{After: position}); err != nil {
			t.Error(err)
		}
	})
}

// TestFormerValues: a point whose value was replaced, and then stored again while nobody followed, arrives again.
func TestFormerValues(t *testing.T) {
	followBubble(t, tsdb.SchemaOptions{}, func(w *world) {
		f := w.under(tsdb.FollowOptions{})
		at := w.put(w.b, roof, 0, 1)
		w.want(f, 5*time.Second, 1)
		w.ok(w.b.Put(w.Context(), roof, at, 2))
		w.want(f, wholeSweep, 2)
		position := f.Cursor()
		w.ok(f.Close())
		w.ok(w.b.Put(w.Context(), roof, at, 1))
		w.want(w.under(tsdb.FollowOptions{After: position}), wholeSweep, 1)
	})
}

// TestPolledPointsExpire: points that a poll has found are not delivered after they have expired.
func TestPolledPointsExpire(t *testing.T) {
	followBubble(t, tsdb.SchemaOptions{Retention: gc.Class{Name: "h1", Policy: gc.MaxAge(time.Hour)}}, func(w *world) {
		f := w.under(tsdb.FollowOptions{})
		w.want(f, 3*time.Second)
		w.put(w.b, roof, 0, 1)
		w.put(w.b, tsdb.NewEntity("berlin", "z"), 0, 2)
		if p := w.first(f, 1); p[0].Value != 2 {
			t.Fatalf("%v is first, want that of the last entity", p)
		}
		time.Sleep(2 * time.Hour)
		w.want(f, time.Minute)
	})
}
