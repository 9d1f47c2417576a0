package cost

import (
	"time"

	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

func temperature(r reading) (float64, bool) { return r.TempC, true }

// byHour returns an aggregator of one measure by the hour.
func byHour(w *world, kind window.Kind) *window.Aggregator[reading] {
	by, err := window.New(window.Every(time.Hour), []window.Measure[reading]{{Name: "temp_c", Kind: kind, Of: temperature}}, window.Options{})
	w.ok(err)
	return by
}

// anHour is an hour with 60 points of each device, and points before it.
func anHour(w *world) tsdb.Interval {
	return tsdb.Between(w.clock().Add(-time.Hour), w.clock())
}

func aggregated(w *world, devices, each int, kind window.Kind) func() {
	w.history(devices, each)
	by := byHour(w, kind)
	return func() {
		w.wantN(drain(w, by.ReadGroups(w.ctx, w.repo.Under(tsdb.AllEntities()), 1, anHour(w))), 1)
	}
}

func grouped(w *world, n int, kind window.Kind) func() {
	w.history(n, 1000)
	by := byHour(w, kind)
	return func() { w.wantN(drain(w, by.ReadGroup(w.ctx, w.repo, devices(n), anHour(w))), 1) }
}

func aligned(w *world, n int) []window.Series[float64] {
	w.history(n, 1000)
	var series []window.Series[float64]
	for i := range n {
		series = append(series, window.NewSeries(w.repo, device(i), temperature))
	}
	return series
}

var windows = group{title: "Aggregating an hour of 60 points, of 1,000", calls: []call{
	{
		covers: []string{"window.Aggregator.ReadGroup"}, name: "`window.Aggregator.ReadGroup`", of: "entities", sizes: []int{1, 5, 20},
		requests: only("read", each(1, 0)), seen: each(60, 0),
		run: func(w *world, n int) func() { return grouped(w, n, window.Gauge) },
	},
	{
		covers: []string{"window.Aggregator.ReadGroup"}, name: "`window.Aggregator.ReadGroup`, of a counter", detail: true, of: "entities", sizes: []int{1, 5, 20},
		requests: only("read", each(2, 0)), seen: each(61, 0),
		run: func(w *world, n int) func() { return grouped(w, n, window.Counter) },
	},
	{
		covers: []string{"window.Aggregator.ReadGroups"}, name: "`Aggregator.ReadGroups`", of: "entities of a group", sizes: []int{1, 5, 20},
		requests: only("read", each(2, 1)), seen: each(76, 32).atMost(),
		run: func(w *world, n int) func() { return aggregated(w, n, 1000, window.Gauge) },
	},
	{
		covers: []string{"window.Aggregator.ReadGroups"}, name: "`Aggregator.ReadGroups`, of a counter", detail: true, of: "entities of a group", sizes: []int{1, 5, 20},
		requests: only("read", each(3, 1)), seen: each(77, 32).atMost(),
		run: func(w *world, n int) func() { return aggregated(w, n, 1000, window.Counter) },
	},
	{
		covers: []string{"window.Outages"}, name: "`window.Outages`", requests: only("read", always(3)), seen: always(61),
		run: func(w *world, _ int) func() {
			w.history(1, 1000)
			return func() { drain(w, window.Outages(w.ctx, w.repo, device(0), anHour(w), time.Minute)) }
		},
	},
	{
		covers: []string{"window.ReadUptime"}, name: "`window.ReadUptime`", requests: only("read", always(3)), seen: always(61),
		run: func(w *world, _ int) func() {
			w.history(1, 1000)
			return func() {
				w.wantN(drain(w, window.ReadUptime(w.ctx, window.Every(time.Hour), w.repo, device(0), anHour(w), time.Minute)), 1)
			}
		},
	},
	{
		covers: []string{"window.Align"}, name: "`window.Align` to a grid, oldest first", of: "series", sizes: []int{1, 5, 20},
		requests: only("read", each(2, 0)), seen: each(61, 0),
		run: func(w *world, n int) func() {
			series := aligned(w, n)
			return func() {
				w.wantN(drain(w, window.Align(w.ctx, window.Every(time.Minute), anHour(w), series, window.AlignOptions{Order: tsdb.OldestFirst})), 60)
			}
		},
	},
	{
		covers: []string{"window.Align"}, name: "`window.Align` to points, newest first", of: "series", sizes: []int{1, 5, 20},
		requests: only("read", each(1, 0)), seen: each(60, 0),
		run: func(w *world, n int) func() {
			series := aligned(w, n)
			return func() {
				w.wantN(drain(w, window.Align(w.ctx, window.Grid{}, anHour(w), series, window.AlignOptions{})), 60)
			}
		},
	},
}}
