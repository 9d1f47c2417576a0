package cost

import (
	"time"

	"github.com/tidemark-go/tidemark/tsdb"
)

// latestUnder returns a read of the newest points of devices, whose histories have `each` points.
func latestUnder(w *world, devices, each int, opts ...tsdb.ReadOption) func() {
	w.history(devices, each)
	return func() { w.wantN(drain(w, w.repo.Under(tsdb.NewPrefix("berlin")).Latest(w.ctx, opts...)), devices) }
}

func entities(w *world, devices, each int) func() {
	w.history(devices, each)
	return func() {
		w.wantN(drain(w, w.repo.Under(tsdb.NewPrefix("berlin")).Entities(w.ctx, tsdb.AllTime())), devices)
	}
}

var prefixes = group{title: "Reading entities that are not known", calls: []call{
	{
		covers: []string{"PrefixReader.Latest"}, name: "`PrefixReader.Latest`, 1 point each", of: "entities", sizes: []int{1, 10, 500},
		requests: only("read", each(1, 1).atMost()), seen: each(1, 0),
		run: func(w *world, n int) func() { return latestUnder(w, n, 1) },
	},
	{
		covers: []string{"PrefixReader.Latest"}, name: "`PrefixReader.Latest`, 1,000 points each", of: "entities", sizes: []int{1, 5, 10},
		requests: only("read", each(1, 1)), seen: each(16, 32).atMost(),
		run: func(w *world, n int) func() { return latestUnder(w, n, 1000) },
	},
	{
		covers: []string{"PrefixReader.Latest"}, name: "`PrefixReader.Latest`, 100 points each", detail: true, of: "entities", sizes: []int{100}, varies: true,
		requests: only("read", each(1, 40).atMost()), seen: each(16, 32).atMost(),
		run: func(w *world, n int) func() { return latestUnder(w, n, 100) },
	},
	{
		covers: []string{"PrefixReader.Latest"}, name: "`PrefixReader.Latest`, 1,000 points each, met before", of: "entities", sizes: []int{1, 10, 300},
		requests: only("read", groups(250, 0)), seen: each(1, 0),
		run: func(w *world, n int) func() {
			read := latestUnder(w, n, 1000)
			read()
			return read
		},
	},
	{
		covers: []string{"PrefixReader.Latest"}, name: "`PrefixReader.Latest`, with heads", of: "entities with 2 points each", schema: headed, sizes: []int{1, 10, 1_001},
		requests: only("read", groups(1000, 0)), seen: each(1, 0),
		run: func(w *world, n int) func() { return latestUnder(w, n, 2) },
	},
	{
		covers: []string{"PrefixReader.Latest"}, name: "`PrefixReader.Latest`, 1 point each, 16 salts", of: "entities", schema: tsdb.SchemaOptions{Salts: 16}, sizes: []int{1, 10, 100},
		requests: only("read", always(16)), seen: each(1, 0),
		run: func(w *world, n int) func() { return latestUnder(w, n, 1) },
	},
	{
		covers: []string{"PrefixReader.Entities"}, name: "`PrefixReader.Entities`, 100 points each", of: "entities", sizes: []int{1, 10, 20},
		requests: only("read", each(1, 1)), seen: each(16, 32).atMost(),
		run: func(w *world, n int) func() { return entities(w, n, 100) },
	},
	{
		covers: []string{"PrefixReader.Entities"}, name: "`PrefixReader.Entities`, with heads", of: "entities with 2 points each", schema: headed, sizes: []int{1, 10, 1_001},
		requests: only("read", groups(1000, 0)), seen: each(1, 0),
		run: func(w *world, n int) func() { return entities(w, n, 2) },
	},
	{
		covers: []string{"PrefixReader.PageLatest"}, name: "`PrefixReader.PageLatest`, 1,000 points each", of: "entities of a page, of 15", sizes: []int{1, 5, 10},
		requests: only("read", each(1, 1).atMost()), seen: each(16, 48).atMost(),
		run: func(w *world, n int) func() {
			w.history(15, 1000)
			return func() {
				page, err := w.repo.Under(tsdb.NewPrefix("berlin")).PageLatest(w.ctx, n, "")
				w.ok(err)
				w.wantN(len(page.Points), n)
			}
		},
	},
	{
		covers: []string{"PrefixReader.PageLatest"}, name: "`PrefixReader.PageLatest`, with heads", of: "entities of a page, of 1,200", schema: headed, sizes: []int{1, 10, 900},
		requests: only("read", always(1)), seen: each(1, 1),
		run: func(w *world, n int) func() {
			w.history(1200, 1)
			return func() {
				page, err := w.repo.Under(tsdb.NewPrefix("berlin")).PageLatest(w.ctx, n, "")
				w.ok(err)
				w.wantN(len(page.Points), n)
			}
		},
	},
	{
		covers: []string{"PrefixReader.PageEntities"}, name: "`PrefixReader.PageEntities`, 1 point each", of: "entities of a page, of 600", sizes: []int{1, 10, 500},
		requests: only("read", each(1, 1).atMost()), seen: each(16, 48).atMost(),
		run: func(w *world, n int) func() {
			w.history(600, 1)
			return func() {
				page, err := w.repo.Under(tsdb.NewPrefix("berlin")).PageEntities(w.ctx, n, "")
				w.ok(err)
				w.wantN(len(page.Entities), n)
			}
		},
	},
}}

func deleteOne(w *world, n int) func() {
	w.history(1, n)
	return func() { w.ok(w.repo.Delete(w.ctx, device(0), noon.Add(-time.Minute))) }
}

func deleteEntity(w *world, n int) func() {
	w.history(2, n)
	return func() {
		got, err := w.repo.DeleteRange(w.ctx, device(0), tsdb.AllTime())
		w.ok(err)
		w.wantN(got, n)
	}
}

var deletions = group{title: "Deleting", calls: []call{
	{
		covers: []string{"Repository.Delete"}, requests: only("write", always(1)), written: always(1),
		run: func(w *world, _ int) func() { return deleteOne(w, 10) },
	},
	{
		covers: []string{"Repository.Delete"}, name: "`Repository.Delete`, with heads", schema: headed,
		requests: map[string]shape{"read": always(3), "write": always(3)}, seen: always(5), written: always(3),
		run: func(w *world, _ int) func() { return deleteOne(w, 10) },
	},
	{
		covers: []string{"Repository.Delete"}, name: "`Repository.Delete`, with rollups", schema: rolled, requests: only("bulk", always(1)), written: always(2),
		run: func(w *world, _ int) func() { return deleteOne(w, 10) },
	},
	{
		covers: []string{"Repository.DeleteRange"}, name: "`Repository.DeleteRange`, all points", of: "points", sizes: []int{1, 100, 10_000}, requests: map[string]shape{"read": fullGroups(5000, 1), "bulk": groups(5000, 0)},
		seen: each(1, 0), written: each(1, 0), run: deleteEntity,
	},
	{
		covers: []string{"Repository.DeleteRange"}, name: "`Repository.DeleteRange`, all points, with a head", of: "points", schema: headed, sizes: []int{1, 100, 5_000},
		requests: map[string]shape{"read": fullGroups(5000, 3), "bulk": groups(5000, 0), "write": always(1)}, seen: each(1, 0), written: each(1, 1), run: deleteEntity,
	},
	{
		covers: []string{"Repository.DeleteRange"}, of: "points in the interval, of 1,200", sizes: []int{10, 100, 1_000}, requests: map[string]shape{"read": always(1), "bulk": always(1)},
		seen: each(1, 0), written: each(1, 0),
		run: func(w *world, n int) func() {
			w.history(1, 1200)
			return func() {
				got, err := w.repo.DeleteRange(w.ctx, device(0), tsdb.Since(noon.Add(-time.Duration(n)*time.Minute)))
				w.ok(err)
				w.wantN(got, n)
			}
		},
	},
	{
		covers: []string{"Repository.DeletePrefix"}, name: "`Repository.DeletePrefix`, 10 points each", of: "entities", sizes: []int{1, 10, 100}, requests: map[string]shape{"read": always(1), "bulk": always(1)},
		seen: each(10, 0), written: each(10, 0), run: deletePrefix,
	},
	{
		covers: []string{"Repository.DeletePrefix"}, name: "`Repository.DeletePrefix`, 10 points each, with heads", of: "entities", schema: headed, sizes: []int{1, 10, 100},
		requests: map[string]shape{"read": always(3), "bulk": always(2)}, seen: each(11, 0), written: each(11, 0), run: deletePrefix,
	},
	{
		covers: []string{"Repository.DeletePrefix"}, name: "`Repository.DeletePrefix`, 10 points each, 16 salts", detail: true, of: "entities", schema: tsdb.SchemaOptions{Salts: 16}, sizes: []int{1, 10, 100},
		requests: map[string]shape{"read": always(16), "bulk": always(16).from(always(1))}, seen: each(10, 0), written: each(10, 0), run: deletePrefix,
	},
}}

func deletePrefix(w *world, n int) func() {
	w.history(n, 10)
	return func() {
		got, err := w.repo.DeletePrefix(w.ctx, tsdb.NewPrefix("berlin"))
		w.ok(err)
		w.wantN(got, 10*n)
	}
}
