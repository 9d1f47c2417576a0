package cost

import (
	"context"
	"fmt"
	"iter"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/rollup"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

// added returns a rollup by hour to which events are added, and a repository of its own schema.
func (w *world) added(mode rollup.Mode, journal *tsdb.Writer) *rollup.Adder[reading] {
	w.Helper()
	r := rollup.MustDefine("hour", window.Every(time.Hour), measures, rollup.Options{Mode: mode, Retention: y1})
	s := tsdb.MustDefine("events", tsdb.Key("site", "device"), codec.JSON[reading](), tsdb.SchemaOptions{Retention: d90, Rollups: []tsdb.Rollup{r}})
	w.ok(w.store.Ensure(w.ctx, s))
	return rollup.NewAdder(r, s.For(w.store, acme), journal)
}

// worker returns a worker for the one tenant.
func (w *world) worker() *rollup.Worker {
	w.Helper()
	worker, err := rollup.NewWorker(w.store, rollup.WorkerOptions{
		Tenants: func(context.Context) iter.Seq2[tenant.ID, error] {
			return func(yield func(tenant.ID, error) bool) { yield(acme, nil) }
		},
	}, w.schema)
	w.ok(err)
	return worker
}

// pass lets a worker compute everything that is marked.
func (w *world) pass(worker *rollup.Worker) {
	w.Helper()
	_, err := worker.Pass(w.ctx)
	w.ok(err)
}

// computedHours stores a point a minute for some hours and lets a worker compute the buckets.
func (w *world) computedHours(devices, hours int) {
	w.Helper()
	w.history(devices, 60*hours)
	w.wait(26 * time.Hour)
	worker := w.worker()
	for range 3 {
		w.pass(worker)
		w.wait(26 * time.Hour)
	}
}

// buckets returns a read of the buckets from a time on, and checks their number.
func buckets(w *world, r *rollup.Rollup[reading], from time.Time, want int) func() {
	return func() {
		w.wantN(drain(w, rollup.For(r, w.repo).Buckets(w.ctx, device(0), tsdb.Between(from, noon))), want)
	}
}

// charted is a schema with a rollup that charts can be read from.
var charted = tsdb.SchemaOptions{Rollups: []tsdb.Rollup{rollup.MustDefine("hour", window.Every(time.Hour), []rollup.Measure[reading]{
	{Name: "temp_c", Of: func(r reading) (float64, bool) { return r.TempC, true }, Decimals: 2, Max: 100, Aggregates: window.Basic | window.Ends},
}, rollup.Options{Retention: y1})}}

// chartOf returns a read of a line of some columns, as long as an interval that ends some time before noon.
func chartOf(w *world, length, before time.Duration, columns int) func() {
	to := noon.Add(-before)
	temp := window.Measure[reading]{Name: "temp_c", Of: func(r reading) (float64, bool) { return r.TempC, true }}
	return func() {
		line, err := window.ReadLine(w.ctx, w.repo, device(0), tsdb.Between(to.Add(-length), to), temp, window.LineOptions{Columns: columns})
		w.ok(err)
		drain(w, line.Samples)
	}
}

// windowsOf returns a read of windows of n days up to noon, or of half hours, which no rollup has.
func windowsOf(w *world, g window.Grid, length time.Duration, n int) func() {
	by, err := window.New(g, []window.Measure[reading]{
		{Name: "temp_c", Of: func(r reading) (float64, bool) { return r.TempC, true }, Aggregates: window.Basic},
	}, window.Options{})
	w.ok(err)
	return func() {
		w.wantN(drain(w, by.Read(w.ctx, w.repo, device(0), tsdb.Between(noon.Add(-length), noon))), n)
	}
}

var rollups = group{title: "Rollups", calls: []call{
	{
		covers: []string{"rollup.Reader.Buckets", "rollup.Reader.Total"}, name: "`rollup.Reader.Buckets` or `Total`, of computed hours", of: "hours", schema: rolled, sizes: []int{1, 24, 48}, requests: only("read", always(2)), seen: always(1),
		run: func(w *world, n int) func() {
			w.computedHours(1, 48)
			return buckets(w, hourly, noon.Add(-time.Duration(n)*time.Hour), n)
		},
	},
	{
		covers: []string{"rollup.Reader.Buckets"}, name: "`rollup.Reader.Buckets`, of days that come from hours", of: "days", schema: rolled, sizes: []int{1, 3}, requests: only("read", always(3)), seen: always(1),
		run: func(w *world, n int) func() {
			w.computedHours(1, 72)
			return buckets(w, daily, noon.Add(-time.Duration(24*n-12)*time.Hour), n)
		},
	},
	{
		covers: []string{"rollup.Reader.Buckets"}, name: "`rollup.Reader.Buckets`, of marked hours, 60 points each", of: "hours", schema: rolled, sizes: []int{1, 24}, requests: only("read", always(3)), seen: each(60, 1),
		run: func(w *world, n int) func() {
			w.history(1, 60*n)
			return buckets(w, hourly, noon.Add(-time.Duration(n)*time.Hour), n)
		},
	},
	{
		covers: []string{"rollup.Reader.Buckets"}, name: "`rollup.Reader.Buckets`, of 24 hours, the last one marked", detail: true, of: "points in the marked hour", schema: rolled, sizes: []int{10, 60}, requests: only("read", always(3)), seen: each(1, 2),
		run: func(w *world, n int) func() {
			w.put(points(noon.Add(-time.Hour), 1, 23*60))
			w.put(points(noon, 1, n))
			w.wait(26 * time.Hour)
			worker := w.worker()
			w.pass(worker)
			w.put(points(noon, 1, n)) // marks the hour again
			return buckets(w, hourly, noon.Add(-24*time.Hour), 24)
		},
	},
	{
		covers: []string{"window.Aggregator.Read"}, name: "`window.Aggregator.Read`, of two hours each, from a rollup by hours", of: "windows", schema: charted, sizes: []int{1, 12, 24}, requests: only("read", always(2)), seen: always(1),
		run: func(w *world, n int) func() {
			w.computedHours(1, 48)
			return windowsOf(w, window.Every(2*time.Hour), time.Duration(2*n)*time.Hour, n)
		},
	},
	{
		covers: []string{"window.Aggregator.Read"}, name: "`window.Aggregator.Read`, of half hours, from points", detail: true, of: "windows", schema: charted, sizes: []int{1, 12, 24}, requests: only("read", always(1)), seen: each(30, 0),
		run: func(w *world, n int) func() {
			w.history(1, 1200)
			return windowsOf(w, window.Every(30*time.Minute), time.Duration(30*n)*time.Minute, n)
		},
	},
	{
		covers: []string{"window.ReadLine"}, name: "`window.ReadLine`, from points", of: "points in the interval", sizes: []int{10, 100, 1_000}, requests: only("read", always(1)), seen: each(1, 0),
		run: func(w *world, n int) func() {
			w.history(1, 1200)
			return chartOf(w, time.Duration(n)*time.Minute, 0, 4*n)
		},
	},
	{
		covers: []string{"window.ReadLine"}, name: "`window.ReadLine`, from a rollup, a column an hour", of: "hours", schema: charted, sizes: []int{1, 24, 48}, requests: only("read", always(2)), seen: always(1),
		run: func(w *world, n int) func() {
			w.computedHours(1, 48)
			return chartOf(w, time.Duration(n)*time.Hour, 0, n)
		},
	},
	{
		covers: []string{"window.ReadLine"}, name: "the same, with 20 points before the first whole hour and 20 after the last one", detail: true, of: "hours", schema: charted, sizes: []int{2, 24, 47}, requests: only("read", always(4)), seen: always(41),
		run: func(w *world, n int) func() {
			w.computedHours(1, 48)
			return chartOf(w, time.Duration(n)*time.Hour-20*time.Minute, 40*time.Minute, n/2)
		},
	},
	{
		covers: []string{"rollup.Reader.Latest"}, of: "requested buckets, computed", schema: rolled, sizes: []int{1, 24}, requests: only("read", always(2)), seen: always(1),
		run: func(w *world, n int) func() {
			w.computedHours(1, 24)
			return func() {
				got, err := rollup.For(hourly, w.repo).Latest(w.ctx, device(0), n)
				w.ok(err)
				w.wantN(len(got), n)
			}
		},
	},
	{
		covers: []string{"rollup.Reader.Many"}, name: "`rollup.Reader.Many`, 24 computed hours each", of: "entities", schema: rolled, sizes: []int{1, 5}, requests: only("read", each(2, 0)), seen: each(1, 0),
		run: func(w *world, n int) func() {
			w.computedHours(n, 24)
			return func() {
				_, err := rollup.For(hourly, w.repo).Many(w.ctx, devices(n), tsdb.Between(noon.Add(-24*time.Hour), noon))
				w.ok(err)
			}
		},
	},
	{
		covers: []string{"rollup.Reader.Entities"}, of: "entities with a row each", schema: rolled, sizes: []int{1, 10, 100}, requests: only("read", always(1)), seen: each(1, 0),
		run: func(w *world, n int) func() {
			w.computedHours(n, 24)
			return func() {
				found := 0
				for _, err := range rollup.For(hourly, w.repo).Entities(w.ctx, tsdb.AllEntities()) {
					w.ok(err)
					found++
				}
				w.wantN(found, n)
			}
		},
	},
	{
		covers: []string{"rollup.Worker.Pass", "rollup.Worker.Run"}, name: "`rollup.Worker.Pass`, one tenant, nothing is marked", schema: rolled, requests: only("read", always(1)),
		run: func(w *world, _ int) func() {
			worker := w.worker()
			return func() { w.pass(worker) }
		},
	},
	{
		covers: []string{"rollup.Worker.Pass"}, name: "`rollup.Worker.Pass`, of all tenants, nothing is marked, after the first pass", of: "tenants", schema: rolled, sizes: []int{1, 100, 1_000}, varies: true,
		requests: only("read", groups(1000, 1).and(fullGroups(1000, 1)).from(groups(1000, 0).and(fullGroups(1000, 1)))),
		run: func(w *world, n int) func() {
			plain := schema(tsdb.SchemaOptions{}) // leaves no marks
			for i := range n {
				w.ok(plain.For(w.store, tenant.MustParse(fmt.Sprintf("t%04d", i))).Put(w.ctx, device(0), noon, value))
			}
			worker, err := rollup.NewWorker(w.store, rollup.WorkerOptions{}, w.schema)
			w.ok(err)
			w.pass(worker)
			return func() { w.pass(worker) }
		},
	},
	{
		covers: []string{"rollup.Worker.Pass"}, name: "`rollup.Worker.Pass`, one tenant, one new hour of 60 points each", of: "entities", schema: rolled, sizes: []int{1, 10, 50},
		requests: map[string]shape{"read": each(2, 3), "conditional": each(1, 0), "bulk": always(2)}, seen: each(62, 1), written: each(3, 0),
		run: func(w *world, n int) func() {
			w.history(n, 60)
			w.wait(2 * time.Hour)
			worker := w.worker()
			return func() { w.pass(worker) }
		},
	},
	{
		covers: []string{"rollup.Reader.Rebuild"}, name: "`rollup.Reader.Rebuild`, of 24 hours, 60 points each", of: "entities", schema: rolled, sizes: []int{1, 4},
		requests: map[string]shape{"read": each(6, 2), "conditional": each(1, 0)}, seen: each(1445, 30), written: each(1, 0),
		run: func(w *world, n int) func() {
			w.history(n, 24*60)
			return func() {
				_, err := rollup.For(hourly, w.repo).Rebuild(w.ctx, tsdb.Between(noon.Add(-24*time.Hour), noon), rollup.RebuildOptions{})
				w.ok(err)
			}
		},
	},
	{
		covers: []string{"rollup.Adder.Add"}, name: "`rollup.Adder.Add` to the table", requests: only("write", always(1)), written: always(1),
		run: func(w *world, _ int) func() {
			in := w.added(rollup.Once, nil)
			w.ok(in.Add(w.ctx, device(1), noon, value))
			return func() { w.ok(in.Add(w.ctx, device(0), noon, value)) }
		},
	},
	{
		covers: []string{"rollup.Adder.AddMany"}, name: "`rollup.Adder.AddMany` to the table", of: "events, each of another entity", sizes: []int{1, 100, 1_000}, requests: only("bulk", always(1)), written: each(1, 0),
		run: func(w *world, n int) func() {
			in := w.added(rollup.Once, nil)
			w.ok(in.Add(w.ctx, tsdb.NewEntity("berlin", "first"), noon, value))
			return func() {
				_, err := in.AddMany(w.ctx, points(noon, n, 1))
				w.ok(err)
			}
		},
	},
	{
		covers: []string{"rollup.Adder.AddMessage"}, requests: only("conditional", always(1)), written: always(1),
		run: func(w *world, _ int) func() {
			in := w.added(rollup.ByMessage, nil)
			return func() {
				_, err := in.AddMessage(w.ctx, "message-1", device(0), noon, value)
				w.ok(err)
			}
		},
	},
	{
		covers: []string{"rollup.Adder.AddMessage"}, name: "`rollup.Adder.AddMessage`, of a repeated message", requests: map[string]shape{"conditional": always(1), "read": always(1)}, seen: always(1), written: always(1),
		run: func(w *world, _ int) func() {
			in := w.added(rollup.ByMessage, nil)
			add := func() {
				_, err := in.AddMessage(w.ctx, "message-1", device(0), noon, value)
				w.ok(err)
			}
			add()
			return add
		},
	},
	{
		covers: []string{"rollup.Adder.AddMany", "rollup.Adder.Add", "rollup.Adder.AddFunc"},
		name:   "`rollup.Adder.Add`, `AddFunc` or `AddMany` through a journal, then `Writer.Flush`", of: "events of as many entities, at once", sizes: []int{1, 10, 100}, requests: only("conditional", each(1, 0)), written: each(1, 0),
		run: func(w *world, n int) func() { return streamed(w, points(noon, n, 1)) },
	},
	{
		covers: []string{"rollup.Adder.AddMany"}, name: "the same, one entity and hour", detail: true, of: "events, at once", sizes: []int{1, 10, 50}, varies: true, requests: only("conditional", each(1, 0).from(always(1))), written: each(1, 0).from(always(1)),
		run: func(w *world, n int) func() { return streamed(w, points(noon, 1, n)) },
	},
}}

// streamed returns a function that adds events to a rollup through a journal.
func streamed(w *world, events []tsdb.Point[reading]) func() {
	writer := w.writer(w.journaled())
	in := w.added(rollup.ByStream, writer)
	return func() {
		outcomes, err := in.AddMany(w.ctx, events)
		w.ok(err)
		for i, o := range outcomes {
			if o.State != tsdb.Journaled {
				w.Errorf("event %d: got state %v", i, o.State)
			}
		}
		w.ok(writer.Flush(w.ctx))
	}
}

// markVersions returns how many versions of a dirty mark the writes of an hour leave, if the worked case's device sends
// each point in a request of its own. In the worst case the service has collected none when the worker reads the
// newest.
func markVersions(t *testing.T) int {
	t.Helper()
	w := newWorld(t, schema(rolled), tsdbtest.Options{})
	w.now = noon.Add(-time.Hour)
	points := int(perDevice * 3600)
	for range points {
		w.ok(w.repo.Put(w.ctx, device(0), w.clock(), value))
		w.wait(time.Hour / time.Duration(points))
	}
	_, _, versions := w.meter.read()
	w.ok(w.store.Close())
	return versions
}
