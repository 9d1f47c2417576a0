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
//	for b, err := range hours.Buckets(ctx, roof, tsdb.Between(from, to), tsdb.OldestFirst, rollup.ReadOptions{}) { … }
//
// Where the points are kept, derive the rollup from them: it is then right whatever happens to them. Where they are not, add
// events up.
//
// # Derived from points
//
// The default. A write marks the buckets of its points in the same request, an overwrite and a deletion likewise. A Worker,
// of which any number may run, computes marked buckets anew from the points once they are closed, and replaces what is
// stored. So late points, overwrites and deletions are all in it, and nothing can be counted twice. Reads do not wait for a
// worker: what is marked, they compute from the points. Their answers are those of the points, at the cost of a few
// cells.
//
// A coarser rollup is computed from a finer one that Options.From names: days from hours cost 24 buckets and not 86,400
// points. Buckets of the finer one must lie within those of the coarser: hours of UTC lie within the days of Berlin, but not
// within those of Kolkata, which begin at half past; a schema refuses those. Writes mark only rollups that come from points;
// a worker marks the coarser ones as it goes, and computes them in a later pass.
//
// # What it costs
//
// A write has one more row in its request for each rollup that comes from points: the entity's row of marks, which points of
// the same span share. First-wins, merging and PutIfAbsent writes send it in a request of its own behind the conditional
// one. A read takes a request for the marks of the rollup and of each that it comes from, and one for what is stored. What
// is marked costs a read of its points besides: of the buckets that are open, and of what has changed since a worker came by.
// Without any worker reads are right, and cost what the points cost.
//
// # Workers and their clocks
//
// Run a worker in one process or in all. Two that compute one row hinder each other, but leave nothing wrong: a row's
// generation is tested in the mutation that replaces its cells. A worker takes a mark when its bucket has ended, by
// Options.Lateness and more, and when it is older than WorkerOptions.Settle: by then the write that made it has landed or
// failed. A mark has the time of the writer's clock, so Settle is to be above the timeout of writes of every program that
// writes, by as much as clocks may differ. The default, three times the timeout of the worker's store, allows for 20 seconds.
// Where a clock is wrong by more, a point may land behind the worker that took its mark, and is missing until its bucket is
// marked or rebuilt.
//
// # Added up
//
// For events that are not kept, such as views of advertisements. Nothing repairs such a sum afterwards, and the official
// client sends an addition again when its answer was lost, which counts it twice. The rollup's Mode says how that is kept
// from happening, and each mode has a way to add of its own:
//
//   - ByStream, Stream: through a writer with a journal. Exact through lost answers and crashes. Events of a row that wait go
//     together in one conditional write. The row keeps some 60 bytes for each journal.
//   - ByMessage, Messages: each event brings an identity, such as the number of a message in a queue. Exact where the queue
//     delivers again within Options.Remember. One conditional write an event; the row keeps some 100 bytes for each.
//   - Once, Once: one attempt. Never counts twice; an event of which nobody knows whether it counts is said to be so.
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
//   - What wrote points without knowing of the rollup has left no marks, be it before the rollup was declared or a program that
//     was built before: Reader.Rebuild.
//   - What a bucket's points came to stays when the points expire, until the bucket does. Once some of its points have
//     expired, a bucket is not computed any more, whatever is written or deleted then.
//   - A copy of a journal's folder gives its numbers again: events that go into both are counted for one of them only.
//   - An interval that is read holds the buckets that start in it, each of them whole.
package rollup
