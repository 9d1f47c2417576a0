// Package window aggregates points by buckets of time: count, sum, mean, minimum, maximum, first and last of the numbers that
// values hold, by the minute, hour, day, week or month of any time zone, with or without the gaps filled.
//
//	byDay, err := window.New(window.Days(1).In(berlin), []window.Measure[Reading]{
//		{Name: "temp_c", Of: func(r Reading) (float64, bool) { return r.TempC, true }},
//		{Name: "humidity", Of: func(r Reading) (float64, bool) { return r.Humidity, r.Humidity > 0 }},
//	}, window.Options{Gaps: window.Linear})
//
//	for day, err := range byDay.Read(ctx, repo, roof, tsdb.Between(from, to), tsdb.OldestFirst) { … }
//
// # What is in a bucket
//
// A [Grid] divides all of time into buckets, each from its start up to, not including, the start of the next one. It does not
// depend on the data or on the interval that is read. If the interval starts or ends within a bucket, the bucket has only the
// points in the interval, and is marked as Partial. Each bucket has one [Summary] for each [Measure]. If a value has no number for
// a measure, or one that is not finite, it counts as a point of the bucket but not for the measure.
//
// # Gaps
//
// By default, the sequence leaves out buckets without a point. With [Null], [Previous] or [Linear] it has all buckets of the
// interval, and filled ones are marked. If a bucket has points but no number for a measure, that is a gap of this measure, and
// filled in the same way.
//
// # Cost
//
// Points are read once and not kept. A sequence reads only as far as its loop goes, and starts no goroutine. [Fill] documents what
// it holds back for gaps.
package window
