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
// Derive the rollup from stored points, or add events to it.
//
// # Derived from points
//
// Each write and deletion marks the buckets of its points in the same request. Workers recompute marked buckets after
// they close. Reads compute marked buckets from the points, so the result equals that of the points.
//
// A write or deletion whose outcome is unknown, or whose program crashed, may have changed the point without its mark.
// Its bucket lacks the change until the write is repeated, as a journal does, another write changes the bucket, or it
// is rebuilt.
//
// # What it costs
//
// A write adds one row of marks to its request for each rollup that is computed from points; points of the same span
// share it. First-wins, merging and PutIfAbsent writes send marks in a request of their own.
//
// A read of Delta, Increase and Integral, and of Ends if gaps at the edges are filled, also needs buckets before the
// interval, Integral and Linear also after it: four, and more until a number is found, up to 1,000 that are not empty.
// Points of marked buckets are read for at most 512 buckets at a time.
//
// # Workers and their clocks
//
// A worker processes a mark when its bucket ended at least Options.Lateness ago and the mark is older than
// WorkerOptions.Settle, which must exceed the write timeout of every program, not only of the worker's store. The
// default allows for clocks that differ by 20 seconds. If a clock is wrong by more, a bucket may lack a point until it
// is marked again or rebuilt.
//
// # Adding events
//
// The rollup's [Mode] decides how an [Adder] counts no event twice when a response was lost: [ByStream], [ByMessage] or
// [Once]. A row of ByStream stores some 60 bytes for each journal.
//
// All modes, and workers, use the app profile of conditional writes: ByStream, ByMessage and workers need its
// single-cluster routing. Bigtable does not say whether one cluster knows the tokens of another.
//
// # Bounds
//
// A schema has at most 8 rollups and a rollup at most 16 measures. A sketch takes up to 2 KB for numbers over three
// powers of ten, and never more than 70 KB. [Options] has the bounds of a row.
//
//   - Grid, class and mode of a rollup cannot change, its measures only by Measure.Added: define another rollup
//     instead, and rebuild it.
//   - Points from before the rollup, and of programs without it, have no marks: call Reader.Rebuild.
//   - Once some of a bucket's points have expired, later writes and deletions no longer change it.
package rollup
