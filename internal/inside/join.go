package inside

import "time"

// JoinRule says how a measure's buckets are joined: a window.Kind, its window.Aggregates, and the options of Integral.
type JoinRule struct {
	Kind       uint8
	Aggregates uint16
	Linear     bool
	Hold       bool
	MaxGap     time.Duration
	MaxDip     float64
	Decimals   int
}

// JoinNumber is the nearest number of a measure outside of an interval.
type JoinNumber struct {
	Found bool
	Time  time.Time
	Units int64 // in multiples of 10^-Decimals
	// Changed is set if the nearest number is not known, as its bucket changed then.
	Changed time.Time
}

// JoinBuckets is window.Fill for buckets that are not yet joined: each knows only its own numbers. Package window sets it
// when a program starts. buckets and the result are an iter.Seq2[window.Bucket, error], frame is a window.Frame and opts
// are window.Options. ends returns the nearest numbers before or after the frame's interval, one for each rule.
var JoinBuckets func(buckets, frame, opts any, rules []JoinRule, ends func(before bool) ([]JoinNumber, error)) any

// CarriesStates reports whether an entity without points in an interval may count there: whether a *window.Aggregator[T] has a
// measure whose states or numbers last into it. Package window sets it when a program starts.
var CarriesStates func(aggregator any) bool

// Aggregation is what a *window.Aggregator[T] computes.
type Aggregation struct {
	Grid    any // a window.Grid
	Names   []string
	Rules   []JoinRule // one for each measure, without Decimals
	Options any        // the window.Options
}

// OfAggregator returns what a *window.Aggregator[T] computes. Package window sets it when a program starts.
var OfAggregator func(aggregator any) Aggregation
