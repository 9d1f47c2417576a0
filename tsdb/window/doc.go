// Package window aggregates points by minute, hour, day, week or month of any time zone. It reads the stored buckets of
// a rollup where they answer, otherwise points.
//
//	byDay, err := window.New(window.Days(1).In(berlin), []window.Measure[Reading]{
//		{Name: "temp_c", Of: func(r Reading) (float64, bool) { return r.TempC, true }},
//	}, window.Options{Gaps: window.Linear})
//
//	for day, err := range byDay.Read(ctx, repo, roof, tsdb.Between(from, to), tsdb.OldestFirst) { … }
//
// # Buckets
//
// A [Grid] divides all of time into buckets. A bucket includes its start and excludes its end. If the interval starts
// or ends within a bucket, the bucket has only the points in the interval and is Partial. Each bucket has one [Summary]
// for each [Measure].
//
// # Kinds of measures
//
// The [Kind] of a measure decides which [Aggregates] are allowed.
//
// Increase and Delta of hours add up to those of the day; Summary.Since says from when they count. Nothing is
// extrapolated: the first number of an entity has no step.
//
// A state lasts until the next one, so a bucket without points has a state, too: [Null] keeps such buckets in the
// sequence. [States] describes what is known of them.
package window
