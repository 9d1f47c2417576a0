package cost

import (
	"fmt"
	"time"

	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
)

// writer returns a writer that sends only full batches until it is flushed, so it makes the same requests on any
// machine.
func (w *world) writer(opts tsdb.WriterOptions) *tsdb.Writer {
	w.Helper()
	opts.Linger = time.Hour
	writer, err := w.store.NewWriter(opts)
	w.ok(err)
	w.Cleanup(func() { _ = writer.Close(w.ctx) })
	return writer
}

// journaled returns options with a journal of the test's own.
func (w *world) journaled() tsdb.WriterOptions {
	return tsdb.WriterOptions{Journal: tsdb.JournalOptions{Dir: w.TempDir()}}
}

// through returns a function that puts points through a writer and flushes it.
func through(w *world, opts tsdb.WriterOptions, pts []tsdb.Point[reading]) func() {
	writer := w.writer(opts)
	in := w.repo.Via(writer)
	return func() {
		for _, p := range pts {
			w.ok(in.EnqueueFunc(w.ctx, p.Entity, p.Time, p.Value, func(o tsdb.Outcome) {
				if o.Err != nil {
					w.Error(o.Err)
				}
			}))
		}
		w.ok(writer.Flush(w.ctx))
	}
}

// several returns n tenants with names as long as acme.
func several(n int) (ids []tenant.ID) {
	for i := range n {
		ids = append(ids, tenant.MustParse(fmt.Sprintf("t%03d", i)))
	}
	return ids
}

// throughTenants is through for 10 points of each of n tenants.
func throughTenants(w *world, n int) func() {
	writer := w.writer(tsdb.WriterOptions{})
	return func() {
		for _, id := range several(n) {
			in := w.schema.For(w.store, id).Via(writer)
			for _, p := range points(noon, 10, 1) {
				w.ok(in.Enqueue(w.ctx, p.Entity, p.Time, p.Value))
			}
		}
		w.ok(writer.Flush(w.ctx))
	}
}

var writers = group{title: "Through a writer", calls: []call{
	{
		covers: []string{"Sink.EnqueueFunc", "Sink.Enqueue", "Sink.TryEnqueue", "Sink.EnqueueMany", "Writer.Flush", "Writer.Close"},
		name:   "`Sink.Enqueue`, `TryEnqueue`, `EnqueueFunc` or `EnqueueMany`, then `Writer.Flush` or `Close`", of: "points enqueued at once", sizes: []int{1, 1_000, 3_500}, varies: true,
		requests: only("bulk", groupsOf(2, 1000, 0).from(groups(1000, 0))), written: each(1, 0),
		run: func(w *world, n int) func() { return through(w, tsdb.WriterOptions{}, points(noon, n, 1)) },
	},
	{
		covers: []string{"Sink.EnqueueFunc"}, name: "the same, `BatchPoints` of 5,000", detail: true, of: "points enqueued at once", sizes: []int{1, 1_000, 5_500}, varies: true,
		requests: only("bulk", groupsOf(2, 5000, 0).from(groups(5000, 0))), written: each(1, 0),
		run: func(w *world, n int) func() {
			return through(w, tsdb.WriterOptions{BatchPoints: 5000}, points(noon, n, 1))
		},
	},
	{
		covers: []string{"Sink.EnqueueFunc"}, name: "the same, with a journal", of: "points enqueued at once", sizes: []int{1, 1_000}, varies: true,
		requests: only("bulk", groupsOf(2, 1000, 0).from(groups(1000, 0))), written: each(1, 0),
		run: func(w *world, n int) func() { return through(w, w.journaled(), points(noon, n, 1)) },
	},
	{
		covers: []string{"Sink.EnqueueFunc"}, name: "the same, with heads", detail: true, of: "points, each of another entity", schema: headed, sizes: []int{1, 1_000, 3_500}, varies: true,
		requests: only("bulk", groupsOf(2, 1000, 0).from(groups(1000, 0))), written: each(2, 0),
		run: func(w *world, n int) func() { return through(w, tsdb.WriterOptions{}, points(noon, n, 1)) },
	},
	{
		covers: []string{"Sink.EnqueueFunc"}, name: "the same, with rollups", detail: true, of: "points, each of another entity", schema: rolled, sizes: []int{1, 1_000, 3_500}, varies: true,
		requests: only("bulk", groupsOf(2, 1000, 0).from(groups(1000, 0))), written: each(2, 0),
		run: func(w *world, n int) func() { return through(w, tsdb.WriterOptions{}, points(noon, n, 1)) },
	},
	{
		covers: []string{"Sink.EnqueueFunc"}, name: "the same, several tenants", of: "tenants, 10 points each", sizes: []int{1, 10}, requests: only("bulk", always(1)), written: each(10, 0), run: throughTenants,
	},
	{
		covers: []string{"Sink.EnqueueFunc"}, name: "the same, several tenants, with `Views`", of: "tenants, 10 points each", sizes: []int{1, 10}, opts: tsdbtest.Options{ViewsFor: several(10)},
		requests: only("bulk", each(1, 0)), written: each(10, 0), run: throughTenants,
	},
	{
		covers: []string{"Sink.EnqueueFunc"}, name: "the same, first wins", of: "points enqueued at once", schema: tsdb.SchemaOptions{FirstWins: true}, sizes: []int{1, 10, 100},
		requests: only("conditional", each(1, 0)), written: each(1, 0),
		run: func(w *world, n int) func() { return through(w, tsdb.WriterOptions{}, points(noon, n, 1)) },
	},
}}
