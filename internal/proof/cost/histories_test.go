package cost

import (
	"fmt"
	"time"

	"github.com/tidemark-go/tidemark/tsdb"
)

// lastHour returns the interval of the newest 60 points of each device.
func lastHour(w *world) tsdb.Interval { return tsdb.Since(w.clock().Add(-time.Hour)) }

func merged(w *world, devices, each, points int, in tsdb.Interval) func() {
	w.history(devices, each)
	return func() { w.wantN(drain(w, w.repo.Under(tsdb.NewPrefix("berlin")).Merged(w.ctx, in)), points) }
}

func ranged(w *world, devices, each, points int, in tsdb.Interval) func() {
	w.history(devices, each)
	return func() { w.wantN(drain(w, w.repo.Under(tsdb.NewPrefix("berlin")).Range(w.ctx, in)), points) }
}

func newestN(w *world, devices, each int) func() {
	w.history(devices, each)
	return func() { w.wantN(drain(w, w.repo.Under(tsdb.NewPrefix("berlin")).LatestN(w.ctx, 5)), devices) }
}

var histories = group{title: "Reading histories under a prefix", calls: []call{
	{
		covers: []string{"PrefixReader.Range"}, name: "`PrefixReader.Range`, all points, 2 each", of: "entities", sizes: []int{1, 16, 266, 1_000},
		requests: only("read", groups(100, 4).atMost()), seen: each(4, 16).atMost(),
		run: func(w *world, n int) func() { return ranged(w, n, 2, 2*n, tsdb.AllTime()) },
	},
	{
		covers: []string{"PrefixReader.Range"}, name: "`PrefixReader.Range` of an hour of 60 points, of 1,000", of: "entities", sizes: []int{1, 5, 20},
		requests: only("read", each(1, 4).atMost()), seen: each(76, 32).atMost(),
		run: func(w *world, n int) func() { return ranged(w, n, 1000, 60*n, lastHour(w)) },
	},
	{
		covers: []string{"PrefixReader.Range"}, name: "`PrefixReader.Range`, all points, 1,000 each", of: "entities", sizes: []int{1, 5, 20},
		requests: only("read", each(2, 3).atMost()), seen: each(1016, 32+4096).atMost(),
		run: func(w *world, n int) func() { return ranged(w, n, 1000, 1000*n, tsdb.AllTime()) },
	},
	{
		covers: []string{"PrefixReader.Merged"}, name: "`PrefixReader.Merged` of an hour of 60 points, of 1,000", of: "entities", sizes: []int{1, 5, 20},
		requests: only("read", each(1, 2)), seen: each(76, 32).atMost(),
		run: func(w *world, n int) func() { return merged(w, n, 1000, 60*n, lastHour(w)) },
	},
	{
		covers: []string{"PrefixReader.Merged"}, name: "`PrefixReader.Merged`, all points, 2 each", of: "entities", sizes: []int{1, 250, 1_000},
		requests: only("read", groups(250, 0).and(groups(100, 4)).atMost()), seen: each(4, 16).atMost(),
		run: func(w *world, n int) func() { return merged(w, n, 2, 2*n, tsdb.AllTime()) },
	},
	{
		covers: []string{"PrefixReader.Merged"}, name: "`PrefixReader.Merged` of all time, of 40 entities", of: "points of each", sizes: []int{10, 1_000, 2_000},
		requests: only("read", groups(200, 60).atMost()), seen: each(40, 40*16+32_768+32).atMost(),
		run: func(w *world, n int) func() { return merged(w, 40, n, 40*n, tsdb.AllTime()) },
	},
	{
		covers: []string{"PrefixReader.Page"}, name: "`PrefixReader.Page`, all points, 10 each", of: "points of a page, of 3,000", sizes: []int{10, 100, 1_000},
		requests: only("read", groups(100, 5).atMost()), seen: each(6, 600).atMost(),
		run: func(w *world, n int) func() {
			w.history(300, 10)
			return func() {
				page, err := w.repo.Under(tsdb.NewPrefix("berlin")).Page(w.ctx, tsdb.AllTime(), n, "")
				w.ok(err)
				w.wantN(len(page.Points), n)
			}
		},
	},
	{
		covers: []string{"PrefixReader.LatestN"}, name: "`PrefixReader.LatestN`, up to 5 of 1,000 points each", of: "entities", sizes: []int{1, 5, 10},
		requests: only("read", each(2, 1).atMost()), seen: each(20, 32).atMost(),
		run: func(w *world, n int) func() { return newestN(w, n, 1000) },
	},
	{
		covers: []string{"PrefixReader.LatestN"}, name: "`PrefixReader.LatestN`, up to 5 of 2 points each", of: "entities", sizes: []int{1, 10, 500},
		requests: only("read", groups(50, 4).atMost()), seen: each(4, 16).atMost(),
		run: func(w *world, n int) func() { return newestN(w, n, 2) },
	},
	{
		covers: []string{"PrefixReader.LatestFields"}, name: "`PrefixReader.LatestFields`, all in the newest point", of: "entities", sizes: []int{1, 10, 500},
		requests: only("read", groups(50, 4).atMost()), seen: each(4, 16).atMost(),
		run: func(w *world, n int) func() {
			w.history(n, 2)
			return func() {
				found := 0
				for _, err := range w.repo.Under(tsdb.AllEntities()).LatestFields(w.ctx, tsdb.FieldOptions{}) {
					w.ok(err)
					found++
				}
				w.wantN(found, n)
			}
		},
	},
	{
		covers: []string{"PrefixReader.Children"}, name: "`PrefixReader.Children`, of 20 entities each with 50 points", of: "children", sizes: []int{1, 10, 30},
		requests: only("read", each(1, 1).atMost()), seen: each(16, 32).atMost(),
		run: func(w *world, n int) func() {
			for site := range n {
				batch := points(w.clock(), 20, 50)
				for i := range batch {
					batch[i].Entity = tsdb.NewEntity(fmt.Sprintf("s%03d", site), batch[i].Entity.Parts()[1])
				}
				w.put(batch)
			}
			return func() { w.wantN(drain(w, w.repo.Under(tsdb.AllEntities()).Children(w.ctx)), n) }
		},
	},
	{
		covers: []string{"PrefixReader.Entities"}, name: "`PrefixReader.Entities` since an hour, 100 points each", of: "entities", sizes: []int{1, 10, 20},
		requests: only("read", each(1, 1)), seen: each(16, 32).atMost(),
		run: func(w *world, n int) func() {
			w.history(n, 100)
			return func() {
				w.wantN(drain(w, w.repo.Under(tsdb.NewPrefix("berlin")).Entities(w.ctx, tsdb.Since(w.clock().Add(-time.Hour)))), n)
			}
		},
	},
	{
		covers: []string{"PrefixReader.Entities"}, name: "`PrefixReader.Entities` of the hour before, 100 points each", of: "entities", sizes: []int{1, 10, 20},
		requests: only("read", each(2, 1)), seen: each(17, 32).atMost(),
		run: func(w *world, n int) func() {
			w.history(n, 100)
			return func() {
				w.wantN(drain(w, w.repo.Under(tsdb.NewPrefix("berlin")).Entities(w.ctx, tsdb.Between(w.clock().Add(-2*time.Hour), w.clock().Add(-time.Hour)))), n)
			}
		},
	},
	{
		covers: []string{"PrefixReader.Silent"}, name: "`PrefixReader.Silent`, 100 points each", of: "entities", sizes: []int{1, 10, 20},
		requests: only("read", each(1, 1)), seen: each(16, 32).atMost(),
		run: func(w *world, n int) func() {
			w.history(n, 100)
			return func() {
				silent, err := w.repo.Under(tsdb.NewPrefix("berlin")).Silent(w.ctx, w.clock(), 10_000)
				w.ok(err)
				w.wantN(len(silent), n)
			}
		},
	},
}}
