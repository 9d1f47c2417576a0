// Package rollup stores aggregates of points, per entity and time bucket, in Bigtable's aggregate cells.
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
// If the points are stored, derive the rollup from them. If they are not, add events to the rollup.
//
// # Derived from points
//
// Each write and deletion marks the buckets of its points in the same request. Any number of Workers recompute marked
// buckets after they close. Reads compute marked buckets from the points, so the result equals that of the points.
//
// A write or deletion whose outcome is unknown, or whose program crashed, may have changed the point without its mark.
// Its bucket lacks the change until the write is repeated, as a journal does, another write changes the bucket, or it
// is rebuilt.
//
// A rollup may be computed from a finer one (Options.From): hours of UTC are inside days of Berlin, but not of Kolkata.
//
// # Measures
//
// A [Measure] is a field of the payload or a function of the value. To package dynamic, a bucket of a function that
// changed since it was stored is incomplete (window.Bucket.Incomplete). A read joins a stored bucket with its
// neighbours. Without a neighbour it lacks the step into its first number, and Summary.Since equals FirstTime.
//
// # What it costs
//
// A write adds one row of marks to its request for each rollup that is computed from points; points of the same span
// share it. First-wins, merging and PutIfAbsent writes send marks in a request of their own.
//
// A read sends one request for the marks of the rollup and of each rollup that it comes from, and one for the stored
// buckets. Delta, Increase and Integral, and Ends if gaps at the edges are filled, also need buckets before the
// interval, Integral and Linear also after it: four, and more until a number is found, up to 1,000 that are not empty.
// Points of marked buckets are read for at most 512 buckets at a time.
//
// # Workers and their clocks
//
// A worker processes a mark when its bucket ended at least Options.Lateness ago and the mark is older than
// WorkerOptions.Settle. Settle must exceed the write timeout of every program by the largest difference between clocks.
// The default, three times the timeout of the worker's store, allows for 20 seconds. If a clock is wrong by more, a
// bucket may lack a point until it is marked again or rebuilt.
//
// # Adding events
//
// The official client repeats an addition when the response was lost, which counts the event twice. The rollup's Mode
// decides how an [Adder] prevents this:
//
//   - ByStream: through a writer with a journal. Exact. Waiting events of a row share one conditional write. The row
//     stores some 60 bytes for each journal.
//   - ByMessage: each event has an identity, such as a message's ID. Exact if the queue repeats a message only within
//     Options.Remember. Each event costs one conditional write and some 100 bytes.
//   - Once: never counts twice. After a lost response the request is repeated with its idempotency token; if that
//     fails, or the service does not recognize tokens, the outcome is unknown.
//
// All of them, and workers, use the app profile of conditional writes: ByStream, ByMessage and workers need its
// single-cluster routing. Bigtable does not say whether one cluster knows the tokens of another.
//
// # Bounds
//
// A schema has at most 8 rollups and a rollup at most 16 measures. A sketch takes up to 2 KB for numbers over three
// powers of ten, and never more than 70 KB. A row has at most 2,000 buckets, of Options.Span. A row of events knows at
// most 1,000 journals, or about Options.MaxMessages messages.
//
// Numbers are rounded to multiples of 10^-Decimals. A derived rollup ignores a number beyond Max, an adder rejects the
// event. If a sum may exceed 64 bits, Summary.Overflow is set.
//
//   - Grid, class and mode of a rollup cannot change, its measures only by Measure.Added: define another rollup
//     instead, and rebuild it.
//   - Points from before the rollup, and of programs without it, have no marks: call Reader.Rebuild.
//   - Once some of a bucket's points have expired, later writes and deletions no longer change it.
//   - A read returns the buckets that start in its interval.
package rollup
