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
// A [Grid] divides all of time into buckets, each from its start up to, not including, that of the next one. It does not
// depend on the data or on the interval that is read: where that starts or ends within a bucket, the bucket holds what the
// interval does of it, and says so (Partial). Each bucket has one [Summary] for each [Measure]. A value that has no number
// for a measure, or one that is not finite, is a point of the bucket that the measure does not count.
//
// # Gaps
//
// By default, buckets without a point are not in the sequence. With [Null], [Previous] or [Linear] all buckets of the
// interval are, and what was put there is marked. A measure of which a bucket has points but no number is a gap of this
// measure, and filled likewise.
//
// # Cost
//
// Points are read once and not kept. A sequence does no more than its loop asks for, and starts no goroutine. [Fill] says what
// is held back for gaps.
package window
