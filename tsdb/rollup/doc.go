// Package rollup keeps aggregates of points, by entity and bucket of time, in the aggregate cells of Bigtable: a dashboard
// reads 24 cells for a day and not a million rows.
//
//	var hourly = rollup.MustDefine("hour", window.Every(time.Hour), []rollup.Measure[Reading]{
//		{Name: "temp_c", Of: func(r Reading) (float64, bool) { return r.TempC, true }, Decimals: 2, Max: 100},
//	}, rollup.Options{})
//
//	var readings = tsdb.MustDefine("readings", tsdb.Key("site", "device"), codec.JSON[Reading](), tsdb.SchemaOptions{
//		Rollups: []tsdb.Rollup{hourly},
//	})
//
//	hours := rollup.For(hourly, readings.For(store, acme))
//	for b, err := range hours.Buckets(ctx, roof, tsdb.Between(from, to), tsdb.OldestFirst) { … }
//
// If the points are stored, derive the rollup from them: it then follows every change of the points. If they are not, add
// events up.
//
// # Derived from points
//
// The default. Each write, overwrite and deletion marks the buckets of its points in the same request. A Worker computes marked
// buckets again from the points once they are closed, and replaces what is stored. Any number of workers may run. So the rollup
// includes late points, overwrites and deletions, and counts nothing twice. Reads do not wait for a worker: they compute marked
// buckets from the points. The result always equals that of the points, and mostly costs a few cells.
//
// A coarser rollup is computed from a finer one that Options.From names: days from hours cost 24 buckets and not 86,400
// points. Buckets of the finer one must lie within those of the coarser: hours of UTC lie within the days of Berlin, but not
// within those of Kolkata, which begin at half past; Define refuses those. Writes mark only rollups that come from points;
// a worker marks the coarser ones, and computes them in a later pass.
//
// # What it costs
//
// A write has one more row in its request for each rollup that comes from points: the entity's row of marks, which points of
// the same span share. First-wins, merging and PutIfAbsent writes send it in a separate request after the conditional
// one. A read takes a request for the marks of the rollup and of each that it comes from, and one for what is stored. It also
// reads the points of marked buckets: those that are open, and those that changed since a worker last computed them. Without
// any worker, reads are correct and cost what reading the points costs.
//
// # Workers and their clocks
//
// Run a worker in one process or in all. If two compute the same row, one repeats its work, and the result is correct: the
// mutation that replaces a row's cells checks the row's generation. A worker takes a mark once its bucket ended at least
// Options.Lateness ago and the mark is older than WorkerOptions.Settle: by then the write that made it has succeeded or failed. A mark
// has the time of the writer's clock, so Settle must exceed the write timeout of every writing program by as much as clocks may
// differ. The default, three times the timeout of the worker's store, allows for 20 seconds. If a clock is wrong by more, a point
// may be stored after the worker took its mark. The bucket then lacks that point until it is marked again or rebuilt.
//
// # Added up
//
// For events that are not stored, such as views of advertisements. Such a sum cannot be repaired afterwards. The official client
// sends an addition again when the response was lost, which counts it twice. The rollup's Mode decides how this is prevented, and
// each mode has its own type that adds:
//
//   - ByStream, Stream: through a writer with a journal. Exact through lost answers and crashes. Events of a row that wait go
//     together in one conditional write. The row keeps some 60 bytes for each journal.
//   - ByMessage, Messages: each event has an identity, such as the number of a message in a queue. Exact if the queue repeats a
//     message only within Options.Remember. One conditional write an event; the row keeps some 100 bytes for each.
//   - Once, Once: one attempt. Never counts an event twice; if the response is lost, the outcome is reported as unknown.
//
// The first two need single-cluster routing, as all conditional writes do. So does a worker.
//
// # Bounds
//
// A schema has at most 8 rollups, a rollup at most 16 measures, a row at most 2,000 buckets, or Options.Span of time. A row
// that is added to knows at most 1,000 journals, or about Options.MaxMessages messages. A number is a whole multiple of
// 10^-Decimals, of at most Max in magnitude: one beyond counts as none in a rollup that is derived, as the point itself is
// stored, and rejects an event that is to be added. A sum that may not fit 64 bits is read with Summary.Overflow. A read
// computes at most 512 buckets in one go.
//
// # Known limits
//
//   - A rollup is part of the stored format: its grid, measures, class and mode cannot change. Define another one, under
//     another name, and rebuild it.
//   - Programs that do not declare the rollup write points without marks. After declaring a rollup over existing points, call
//     Reader.Rebuild.
//   - A bucket stays when its points expire, until it expires itself. Once some of its points have expired, a bucket is not
//     computed again, whatever is written or deleted then.
//   - A copy of a journal's folder repeats its numbers: events that go into both copies are counted for one of them only.
//   - A read returns the buckets that start in its interval, each of them whole.
package rollup
