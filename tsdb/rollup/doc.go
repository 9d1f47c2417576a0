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
// # Derived from points
//
// The default. A write marks the buckets of its points in the same request, an overwrite and a deletion likewise. A Worker,
// of which any number may run, computes marked buckets anew from the points once they are closed, and replaces what is
// stored. So late points, overwrites and deletions are all in it, and nothing can be counted twice. Reads do not wait for a
// worker: what is marked, they compute from the points. Their answers are those of the points, at the cost of a few
// cells.
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
//   - AtMostOnce, Once: one attempt. Never counts twice; an event of which nobody knows whether it counts is said to be so.
//
// The first two need single-cluster routing, as all conditional writes do.
package rollup
