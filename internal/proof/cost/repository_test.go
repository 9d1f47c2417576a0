package cost

import (
	"errors"
	"time"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/rollup"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

// headed is a schema with heads of three points.
var headed = tsdb.SchemaOptions{Precision: tsdb.Milliseconds, Head: tsdb.Head{Points: 3}}

// hourly is a rollup by hour of both numbers of a reading. day is a rollup by day that is computed from it.
var (
	measures = []rollup.Measure[reading]{
		{Name: "temp_c", Of: func(r reading) (float64, bool) { return r.TempC, true }, Decimals: 2, Max: 100},
		{Name: "humidity", Of: func(r reading) (float64, bool) { return r.Humidity, true }, Decimals: 1, Max: 100},
	}
	hourly = rollup.MustDefine("hour", window.Every(time.Hour), measures, rollup.Options{Retention: y1})
	daily  = rollup.MustDefine("day", window.Days(1), measures, rollup.Options{Retention: y1, From: "hour"})
	y1     = gc.Class{Name: "y1", Policy: gc.MaxAge(366 * 24 * time.Hour)}
)

var (
	rolled = tsdb.SchemaOptions{Rollups: []tsdb.Rollup{hourly, daily}}
	both   = tsdb.SchemaOptions{Precision: tsdb.Milliseconds, Head: tsdb.Head{Points: 3}, Rollups: rolled.Rollups}
)

func (w *world) putOne() func() {
	return func() { w.ok(w.repo.Put(w.ctx, device(0), noon.Add(-time.Minute), value)) }
}

// putAgain returns a put of another value for an existing point.
func (w *world) putAgain(want error) func() {
	w.history(1, 1)
	return func() {
		if err := w.repo.Put(w.ctx, device(0), noon.Add(-time.Minute), reading{TempC: 1}); !errors.Is(err, want) {
			w.Fatalf("Put again = %v, want %v", err, want)
		}
	}
}

func putMany(w *world, n int) func() {
	pts := points(noon, n, 1)
	return func() { w.put(pts) }
}

// recorded returns a put of one field of a merging record. there says whether the point already has another field.
func recorded(w *world, there bool) func() {
	s := tsdb.MustDefine("records", tsdb.Key("site", "device"), codec.Records(), tsdb.SchemaOptions{Retention: d90, Merge: true})
	w.ok(w.store.Ensure(w.ctx, s))
	repo := s.For(w.store, acme)
	at := noon.Add(-time.Minute)
	if there {
		w.ok(repo.Put(w.ctx, device(0), at, codec.NewRecord(codec.Field{Name: "humidity", Value: codec.Float(40)})))
	}
	return func() {
		w.ok(repo.Put(w.ctx, device(0), at, codec.NewRecord(codec.Field{Name: "temp_c", Value: codec.Float(21.5)})))
	}
}

var writes = group{title: "Writing", calls: []call{
	{
		covers: []string{"Repository.Put"}, requests: only("write", always(1)), written: always(1),
		run: func(w *world, _ int) func() { return w.putOne() },
	},
	{
		covers: []string{"Repository.Put"}, name: "`Repository.Put`, with a head", schema: headed, requests: only("bulk", always(1)), written: always(2),
		run: func(w *world, _ int) func() { return w.putOne() },
	},
	{
		covers: []string{"Repository.Put"}, name: "`Repository.Put`, with rollups", schema: rolled, requests: only("bulk", always(1)), written: always(2),
		run: func(w *world, _ int) func() { return w.putOne() },
	},
	{
		covers: []string{"Repository.Put"}, name: "`Repository.Put`, first wins", schema: tsdb.SchemaOptions{FirstWins: true},
		requests: only("conditional", always(1)), written: always(1),
		run: func(w *world, _ int) func() { return w.putOne() },
	},
	{
		covers: []string{"Repository.Put"}, name: "`Repository.Put`, first wins, if another value exists", schema: tsdb.SchemaOptions{FirstWins: true},
		requests: map[string]shape{"conditional": always(1), "read": always(1)}, seen: always(1), written: always(1),
		run: func(w *world, _ int) func() { return w.putAgain(tsdb.ErrExists) },
	},
	{
		covers: []string{"Repository.Put"}, name: "`Repository.Put`, first wins, with a head", detail: true, schema: tsdb.SchemaOptions{FirstWins: true, Precision: headed.Precision, Head: headed.Head},
		requests: map[string]shape{"conditional": always(1), "write": always(1)}, written: always(2),
		run: func(w *world, _ int) func() { return w.putOne() },
	},
	{
		covers: []string{"Repository.Put"}, name: "`Repository.Put`, first wins, with rollups", detail: true, schema: tsdb.SchemaOptions{FirstWins: true, Rollups: rolled.Rollups},
		requests: map[string]shape{"conditional": always(1), "bulk": always(1)}, written: always(2),
		run: func(w *world, _ int) func() { return w.putOne() },
	},
	{
		covers: []string{"Repository.Put"}, name: "`Repository.Put`, in a schema with `Classes`", detail: true, schema: choosing, requests: only("write", always(1)), written: always(1),
		run: func(w *world, _ int) func() { return w.putOne() },
	},
	{
		covers: []string{"Repository.Put"}, name: "`Repository.Put`, merging, if no point exists",
		requests: only("conditional", always(1)), written: always(1),
		run: func(w *world, _ int) func() { return recorded(w, false) },
	},
	{
		covers: []string{"Repository.Put"}, name: "`Repository.Put`, merging a field into a point",
		requests: map[string]shape{"conditional": always(2), "read": always(1)}, seen: always(1), written: always(2),
		run: func(w *world, _ int) func() { return recorded(w, true) },
	},
	{
		covers: []string{"Repository.PutIfAbsent"}, requests: map[string]shape{"conditional": always(1), "read": always(1)}, written: always(1),
		run: func(w *world, _ int) func() {
			return func() {
				_, err := w.repo.PutIfAbsent(w.ctx, device(0), noon, value)
				w.ok(err)
			}
		},
	},
	{
		covers: []string{"Repository.PutIfAbsent"}, name: "`Repository.PutIfAbsent`, if a point exists",
		requests: map[string]shape{"conditional": always(1), "read": always(1)}, seen: always(1), written: always(1),
		run: func(w *world, _ int) func() {
			w.history(1, 1)
			return func() {
				stored, err := w.repo.PutIfAbsent(w.ctx, device(0), noon.Add(-time.Minute), reading{TempC: 1})
				w.ok(err)
				if stored {
					w.Fatal("a point replaced another, want it refused")
				}
			}
		},
	},
	{
		covers: []string{"Repository.PutMany"}, of: "points", sizes: []int{1, 100, 10_000, 10_001}, requests: only("bulk", groups(10_000, 0)), written: each(1, 0),
		run: putMany,
	},
	{
		covers: []string{"Repository.PutMany"}, name: "`Repository.PutMany`, with heads", of: "points, of as many entities", schema: headed, sizes: []int{1, 100, 5_001},
		requests: only("bulk", groups(5_000, 0)), written: each(2, 0), run: putMany,
	},
	{
		covers: []string{"Repository.PutMany"}, name: "`Repository.PutMany`, with rollups", of: "points, of as many entities", schema: rolled, sizes: []int{1, 100, 5_001},
		requests: only("bulk", groups(5_000, 0)), written: each(2, 0), run: putMany,
	},
	{
		covers: []string{"Repository.PutMany"}, name: "`Repository.PutMany`, with heads and rollups", detail: true, of: "points, of as many entities", schema: both, sizes: []int{1, 100, 3_334},
		requests: only("bulk", groupsOf(1, 3_333, 0)), written: each(3, 0), run: putMany,
	},
	{
		covers: []string{"Repository.PutMany"}, name: "`Repository.PutMany`, with rollups", of: "points of one entity, within an hour", schema: rolled, sizes: []int{1, 10, 50},
		requests: only("bulk", always(1)), written: each(1, 1),
		run: func(w *world, n int) func() {
			pts := points(noon, 1, n)
			return func() { w.put(pts) }
		},
	},
	{
		covers: []string{"Repository.PutMany"}, name: "`Repository.PutMany`, first wins", of: "points", schema: tsdb.SchemaOptions{FirstWins: true}, sizes: []int{1, 10, 100},
		requests: only("conditional", each(1, 0)), written: each(1, 0), run: putMany,
	},
}}

// latest returns a read of the newest point of a device with n points.
func latest(w *world, n int, opts ...tsdb.ReadOption) func() {
	w.history(1, n)
	return func() {
		_, err := w.repo.Latest(w.ctx, device(0), opts...)
		w.ok(err)
	}
}

func latestMany(w *world, n int, opts ...tsdb.ReadOption) func() {
	w.history(n, 1+min(1, 1000/n)) // one point each is enough for many entities
	return func() {
		answers, err := w.repo.LatestMany(w.ctx, devices(n), 1, opts...)
		w.ok(err)
		w.wantN(len(answers), n)
	}
}

// expired stores a history of n points, all expired except the newest three.
func expired(w *world, n int) {
	w.history(1, n)
	w.wait(90*24*time.Hour + time.Hour)
	w.history(1, 3)
}

var lasting = tsdbtest.Options{StoreOptions: tsdb.StoreOptions{Cache: tsdb.CacheOptions{Entries: 1000}}}

var reads = group{title: "Reading entities that are known", calls: []call{
	{
		covers: []string{"Repository.Get"}, requests: only("read", always(1)), seen: always(1),
		run: func(w *world, _ int) func() {
			w.history(1, 100)
			return func() {
				_, err := w.repo.Get(w.ctx, device(0), noon.Add(-time.Minute))
				w.ok(err)
			}
		},
	},
	{
		covers: []string{"Repository.Latest"}, of: "points in the history", sizes: []int{1, 100, 10_000}, requests: only("read", always(1)), seen: always(1),
		run: func(w *world, n int) func() { return latest(w, n) },
	},
	{
		covers: []string{"Repository.Latest"}, name: "`Repository.Latest`, of an entity without points", detail: true, requests: only("read", always(1)),
		run: func(w *world, _ int) func() {
			return func() {
				if _, err := w.repo.Latest(w.ctx, device(0)); !errors.Is(err, tsdb.ErrNotFound) {
					w.Fatal(err)
				}
			}
		},
	},
	{
		covers: []string{"Repository.Latest"}, name: "`Repository.Latest`, if all points have expired", of: "expired points, not collected", sizes: []int{1, 100, 1_000}, requests: only("read", always(1)),
		run: func(w *world, n int) func() {
			w.history(1, n)
			w.wait(91 * 24 * time.Hour)
			return func() {
				if _, err := w.repo.Latest(w.ctx, device(0)); !errors.Is(err, tsdb.ErrNotFound) {
					w.Fatal(err)
				}
			}
		},
	},
	{
		covers: []string{"Repository.Latest"}, name: "`Repository.Latest`, from the cache", opts: lasting, requests: map[string]shape{},
		run: func(w *world, _ int) func() {
			read := latest(w, 100, tsdb.MaxStale(time.Minute))
			read()
			return read
		},
	},
	{
		covers: []string{"Repository.LatestN"}, of: "requested points", sizes: []int{1, 10, 100}, requests: only("read", always(1)), seen: each(1, 0),
		run: func(w *world, n int) func() {
			w.history(1, 1000)
			return func() {
				got, err := w.repo.LatestN(w.ctx, device(0), n)
				w.ok(err)
				w.wantN(len(got), n)
			}
		},
	},
	{
		covers: []string{"Repository.AsOf"}, of: "points in the history", sizes: []int{2, 100, 1_000}, requests: only("read", always(1)), seen: always(1),
		run: func(w *world, n int) func() {
			w.history(1, n)
			return func() {
				_, err := w.repo.AsOf(w.ctx, device(0), noon.Add(-time.Duration(n/2)*time.Minute))
				w.ok(err)
			}
		},
	},
	{
		covers: []string{"Repository.Range"}, of: "points in the interval", sizes: []int{10, 100, 1_000}, requests: only("read", always(1)), seen: each(1, 0),
		run: func(w *world, n int) func() {
			w.history(1, 1200)
			return func() {
				w.wantN(drain(w, w.repo.Range(w.ctx, device(0), tsdb.Since(noon.Add(-time.Duration(n)*time.Minute)))), n)
			}
		},
	},
	{
		covers: []string{"Repository.Range"}, name: "`Repository.Range` of all time, with 3 visible points", detail: true, of: "expired points, not collected", sizes: []int{1, 100, 1_000},
		requests: only("read", always(1)), seen: always(3),
		run: func(w *world, n int) func() {
			expired(w, n)
			return func() { w.wantN(drain(w, w.repo.Range(w.ctx, device(0), tsdb.AllTime())), 3) }
		},
	},
	{
		covers: []string{"Repository.Page"}, of: "points of a page, of 1,200", sizes: []int{10, 100, 1_000}, requests: only("read", always(1)), seen: each(1, 1),
		run: func(w *world, n int) func() {
			w.history(1, 1200)
			return func() {
				page, err := w.repo.Page(w.ctx, device(0), tsdb.AllTime(), n, "")
				w.ok(err)
				w.wantN(len(page.Points), n)
			}
		},
	},
	{
		covers: []string{"Repository.LatestFields"}, name: "`Repository.LatestFields`, all in the newest point", of: "points in the history", sizes: []int{1, 100, 1_000}, requests: only("read", always(1)), seen: always(16).atMost(),
		run: func(w *world, n int) func() {
			w.history(1, n)
			return func() {
				f, err := w.repo.LatestFields(w.ctx, device(0), tsdb.FieldOptions{})
				w.ok(err)
				w.wantN(f.Times.Len(), 2)
			}
		},
	},
	{
		covers: []string{"Repository.LatestFieldsMany"}, name: "`Repository.LatestFieldsMany`, all in the newest point", of: "entities", sizes: []int{1, 10, 300}, requests: only("read", each(1, 0)), seen: each(1, 0),
		run: func(w *world, n int) func() {
			w.history(n, 1)
			return func() {
				all, err := w.repo.LatestFieldsMany(w.ctx, devices(n), tsdb.FieldOptions{})
				w.ok(err)
				w.wantN(len(all), n)
			}
		},
	},
	{
		covers: []string{"Repository.LatestMany"}, of: "entities", sizes: []int{1, 10, 300}, requests: only("read", each(1, 0)), seen: each(1, 0),
		run: func(w *world, n int) func() { return latestMany(w, n) },
	},
	{
		covers: []string{"Repository.LatestMany"}, name: "`Repository.LatestMany`, of entities read before", of: "entities", sizes: []int{10, 300, 4_000},
		requests: only("read", groups(250, 0)), seen: each(1, 0),
		run: func(w *world, n int) func() {
			read := latestMany(w, n)
			read()
			return read
		},
	},
	{
		covers: []string{"Repository.LatestMany"}, name: "`Repository.LatestMany`, with heads", of: "entities", schema: headed, sizes: []int{1, 10, 300, 12_196},
		requests: only("read", groups(12_195, 0)), seen: each(1, 0),
		run: func(w *world, n int) func() { return latestMany(w, n) },
	},
	{
		covers: []string{"Repository.LatestMany"}, name: "`Repository.LatestMany`, from the cache", of: "entities", opts: lasting, sizes: []int{1, 10, 300}, requests: map[string]shape{},
		run: func(w *world, n int) func() {
			read := latestMany(w, n, tsdb.MaxStale(time.Minute))
			read()
			return read
		},
	},
	{
		covers: []string{"Repository.LatestMany"}, name: "`Repository.LatestMany`, 5 points each", detail: true, of: "entities", sizes: []int{1, 10, 300}, requests: only("read", each(1, 0)), seen: each(5, 0),
		run: func(w *world, n int) func() {
			w.history(n, 10)
			return func() {
				_, err := w.repo.LatestMany(w.ctx, devices(n), 5)
				w.ok(err)
			}
		},
	},
	{
		covers: []string{"Repository.LatestMany"}, name: "`Repository.LatestMany`, 3 points each, with heads", detail: true, of: "entities", schema: headed, sizes: []int{1, 10, 300},
		requests: only("read", always(1)), seen: each(1, 0),
		run: func(w *world, n int) func() {
			w.history(n, 5)
			return func() {
				_, err := w.repo.LatestMany(w.ctx, devices(n), 3)
				w.ok(err)
			}
		},
	},
	{
		covers: []string{"window.Aggregator.Read"}, name: "`window.Aggregator.Read`", of: "points in the interval", sizes: []int{10, 100, 1_000}, requests: only("read", always(1)), seen: each(1, 0),
		run: func(w *world, n int) func() {
			w.history(1, 1200)
			byHour, err := window.New(window.Every(time.Hour), []window.Measure[reading]{{Name: "temp_c", Of: func(r reading) (float64, bool) { return r.TempC, true }}}, window.Options{})
			w.ok(err)
			return func() {
				drain(w, byHour.Read(w.ctx, w.repo, device(0), tsdb.Between(noon.Add(-time.Duration(n)*time.Minute), noon), tsdb.OldestFirst))
			}
		},
	},
}}
