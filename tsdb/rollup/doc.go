// Package rollup stores aggregates of points, per entity and time bucket, in Bigtable's aggregate cells. A dashboard
// reads 24 cells for a day instead of a million points.
//
//	var hourly = rollup.MustDefine("hour", window.Every(time.Hour), []rollup.Measure[Reading]{
//		{Name: "temp_c", Field: "temp_c", Decimals: 2, Max: 100},
//	}, rollup.Options{})
//
//	var readings = tsdb.MustDefine("readings", tsdb.Key("site", "device"), codec.JSON[Reading](), tsdb.SchemaOptions{
//		Rollups: []tsdb.Rollup{hourly},
//	})
//
//	hours := rollup.For(hourly, readings.For(store, acme))
//	for b, err := range hours.Buckets(ctx, roof, tsdb.Between(from, to), tsdb.OldestFirst) { … }
//
// If the points are stored, derive the rollup from them: it then follows every change of the points. If the points
// are not stored, add events to the rollup.
//
// # Derived from points
//
// This is the default. Each write, overwrite and deletion marks the buckets of its points in the same request. A
// Worker recomputes marked buckets from the points after they close, and replaces the stored ones. Any number of
// workers may run. So the rollup includes late points, overwrites and deletions, and counts nothing twice. Reads do
// not wait for a worker: they compute marked buckets from the points. The result always equals that of the points,
// and usually costs a few cells.
//
// A write or deletion whose outcome is unknown, or that its program did not live to see, may have changed the point
// without its mark. Its bucket then lacks the change until the write is repeated, another one changes the bucket, or
// it is rebuilt. A journal repeats its writes.
//
// Options.From names a finer rollup from which a coarser one is computed: a day then costs 24 buckets instead of
// 86,400 points. Each bucket of the finer rollup must be inside one bucket of the coarser one;
// otherwise tsdb.Define fails.
// Hours of UTC fit into days of Berlin, but not into days of Kolkata, which begin at half past the hour. Writes mark
// only rollups that are computed from points. A worker marks the coarser rollups and computes them in a later pass.
//
// # Fields and functions
//
// A measure is a field of the payload (Measure.Field), or a function of the value (Measure.Of and Int). The catalogue stores the field. So
// programs without the Go type, which read the rollup with package dynamic, compute the same buckets. They cannot compute a function: to
// them a bucket that changed since a worker stored it is incomplete (window.Bucket.Incomplete).
//
// # Kinds of measures
//
// Measure.Kind and Measure.Aggregates are those of package window. A derived rollup also keeps the first and the last
// number with their times, and what the increase of counters and the change, standard deviation and integral of gauges
// need. A stored bucket knows only its own numbers: a read joins it with its neighbours. So a late point or a deletion
// changes one stored bucket, and reads see its effect on the next one immediately. If a bucket has no neighbour, because
// older points have expired or were deleted and no older bucket is kept, it lacks the step into its first number;
// Summary.Since then equals FirstTime.
//
// With window.Quantiles, a bucket stores a sketch of its numbers, which a worker replaces like the other cells. Coarser
// rollups and Total merge sketches without loss.
//
// # What it costs
//
// A write adds one row to its request for each rollup that is computed from points: the entity's row of marks. Points
// of the same span share that row. First-wins, merging and PutIfAbsent writes send the marks in a separate request
// after the conditional one.
//
// A read sends one request for the marks of the rollup, one for the marks of each rollup that it is derived from, and
// one for the stored buckets. For measures with Delta, Increase or Integral, and for measures with Ends if gaps at
// the edges are filled, it also reads the four buckets before the interval, and for Integral and Linear the four after it. If one
// of these measures has no number there, it reads on until one is found, up to 1,000 buckets that are not empty. A number
// that is even further away counts as missing. A read also reads the points of marked buckets: open buckets, and buckets
// that changed since a worker last computed them. Without a worker, reads are correct and cost as much as reading the points.
//
// # Workers and their clocks
//
// Run a worker in one process or in all. If two workers compute the same row, one repeats the work of the other, and
// the result is correct: a mutation replaces a row's cells only if the row's generation is unchanged.
//
// A worker processes a mark when its bucket ended at least Options.Lateness ago and the mark is older than
// WorkerOptions.Settle. By then the write that made the mark has succeeded or failed. The mark's time is that of the
// writer's clock, so Settle must exceed the write timeout of every writing program by the largest difference between
// clocks. The default is three times the timeout of the worker's store, which allows for 20 seconds. If a clock is
// wrong by more, a point may be stored after the worker has processed its mark. The bucket then lacks that point
// until it is marked again or rebuilt.
//
// # Adding events
//
// Use this for events that are not stored, such as views of advertisements. Nothing can repair such a sum afterwards.
// The official client repeats an addition when the response was lost, which counts the event twice. The rollup's Mode
// decides how this is prevented. Each mode has its own adder type:
//
//   - ByStream, StreamAdder: through a writer with a journal. Exact through lost responses and crashes. Waiting events of a row
//     share one conditional write. The row stores some 60 bytes for each journal.
//   - ByMessage, MessageAdder: each event has an identity, such as the ID of a message in a queue. Exact if the queue repeats a
//     message only within Options.Remember. Each event costs one conditional write; the row stores some 100 bytes for each.
//   - Once, OnceAdder: no memory of events in the row. Never counts an event twice. If a response is lost, the request is repeated
//     with its idempotency token; if that fails too, or if the service does not recognize tokens, the outcome is reported as unknown.
//
// ByStream, ByMessage and workers need single-cluster routing, because they use conditional writes. Once also uses the app profile of
// conditional writes, because Bigtable does not say whether one cluster knows the tokens of another.
//
// # Bounds
//
// A schema has at most 8 rollups and a rollup at most 16 measures. A sketch takes two or three bytes for each bin that has
// numbers: up to 2 KB if they range over three powers of ten, and never more than 70 KB. A row has at most 2,000 buckets, and covers at
// most Options.Span of time. A row that events are added to knows at most 1,000 journals, or about
// Options.MaxMessages messages.
//
// A number is rounded to a multiple of 10^-Decimals, and its magnitude is at most Max. A derived rollup ignores a
// number beyond Max, because the point itself is stored. An adder rejects the event. If a sum may exceed 64 bits,
// Summary.Overflow is set. A read computes at most 512 buckets at a time.
//
// # Known limits
//
//   - A rollup is part of the stored format: its grid, class and mode cannot change, and its measures only by Measure.Added.
//     Else define another rollup with another name, and rebuild it.
//   - Programs that do not declare the rollup write points without marks. After you declare a rollup over existing points, call
//     Reader.Rebuild.
//   - A bucket outlives its points and expires by its own retention. Once some of its points have expired, later writes and
//     deletions no longer change the bucket.
//   - A copy of a journal's folder repeats its numbers: of the events that go into both copies, only those of one copy count.
//   - A read returns the buckets that start in its interval, each of them whole.
package rollup
