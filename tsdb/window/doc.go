// Package window aggregates points by time buckets: by minute, hour, day, week or month of any time zone. It computes
// the count, sum, mean, minimum, maximum, first and last of the numbers in values; the increase, rate and resets of
// counters; the percentiles, change, standard deviation, time-weighted mean and integral of gauges; and how long each
// state lasted. It takes the buckets that a rollup stores where they answer, and reads points where they do not. It
// can fill gaps, add up the buckets of a group of entities, find outages, align series with one another, and draw
// lines for charts.
//
//	byDay, err := window.New(window.Days(1).In(berlin), []window.Measure[Reading]{
//		{Name: "temp_c", Of: func(r Reading) (float64, bool) { return r.TempC, true }},
//		{Name: "humidity", Of: func(r Reading) (float64, bool) { return r.Humidity, r.Humidity > 0 }},
//	}, window.Options{Gaps: window.Linear})
//
//	for day, err := range byDay.Read(ctx, repo, roof, tsdb.Between(from, to), tsdb.OldestFirst) { … }
//
// # Buckets
//
// A [Grid] divides all of time into buckets. A bucket includes its start and excludes its end, which is the start of
// the next one. A grid does not depend on the data or on the interval that is read. If the interval starts or ends
// within a bucket, the bucket has only the points in the interval and is marked as Partial. Each bucket has one
// [Summary] for each [Measure]. A value that has no finite number for a measure counts as a point of the bucket but
// not for the measure.
//
// # Kinds of measures
//
// A measure declares its [Kind]: a gauge rises and falls, a counter only grows, a state has a name and lasts. The kind decides which
// [Aggregates] are allowed, and [New] refuses the others. [Summary] describes each.
//
// The step between two numbers belongs to the bucket of the later one, so Increase and Delta of the hours add up to those
// of the day. To know the step into the first bucket, [Aggregator.Read] reads the last point before the interval. Nothing
// is extrapolated: the first number that an entity ever stored has no step. A late point changes its own bucket and the
// bucket of the next number; a deleted one, too. If the earlier points have expired or were deleted, the first bucket
// lacks its step, and Since says from when it counts.
//
// A state lasts until the next one, so a bucket without points has a state, too: [Null] keeps such buckets in the sequence. [States]
// describes what is known of them.
//
// # Percentiles
//
// With [Quantiles], a bucket has a sketch of its numbers: [Summary.Quantile] returns percentiles, [Summary.Histogram]
// counts between bounds. The error is at most 0.8 percent of the number, whatever the numbers are. The percentiles of
// a group, and of windows that are read from a rollup, are those of all their numbers.
//
// # Other questions
//
//   - [Aggregator.ReadGroup] adds up the buckets of several entities; [Aggregator.ReadGroups] does so for all groups under a prefix.
//   - [Outages] are the times in which an entity sent nothing for too long, and [ReadUptime] is the rest, by buckets.
//   - [Align] puts the values of several entities, also of different datasets, into rows of one time.
//   - [ReadLine] returns the few samples that a line on a screen needs, from a rollup where one fits.
//
// The others read points. Rollups keep numbers of buckets only, so they can answer none of these questions, with one
// exception: a bucket without points tells that an entity was silent.
//
// # Gaps
//
// By default, the sequence leaves out buckets without a point. With [Null], [Previous] or [Linear], it has all
// buckets of the interval, and filled ones are marked. A bucket that has points but no number for a measure is a gap
// of that measure, and is filled in the same way.
//
// # Cost
//
// A sequence reads points once and does not keep them. It reads only as far as the loop goes, and starts no
// goroutine. [LeaveOut] and [Null] hold no buckets back, nor does [Previous] with the oldest first. [Linear], and
// [Previous] with the newest first, hold back the buckets of a gap until the next bucket that has the measure, at
// most Options.MaxFilled of them; one more ends the sequence with [ErrTooManyFilled]. Only [Aggregator.ReadGroup]
// reads entities in parallel, and only aligned series have several reads open.
package window
