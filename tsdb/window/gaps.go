package window

import (
	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/tsdb"
)

// Gaps says how to represent a bucket without points, or without a number for one of the measures. Such a bucket
// always has a Count of 0. If a Gaps fills it, it is marked as Filled, and its Sum stays 0, so that totals count only
// measured numbers.
//
// Gaps are the empty buckets between the first and the last bucket with a point. If the interval has a start or an
// end, gaps extend to it.
//
// [Aggregator.Read] and a rollup's reader also fill the gaps at the interval's start and end from outside of it: from
// the single nearest number there, not from all of its bucket. That number is then each of Mean, Min, Max, First and
// Last. So a gap at an edge may have other values than the same gap inside a longer interval.
//
// A Gaps marshals as text: "leave-out", "null", "previous", "linear".
type Gaps uint8

const (
	// LeaveOut is the default: the sequence has no buckets without a point.
	LeaveOut Gaps = iota
	// Null includes them as empty buckets.
	Null
	// Previous copies each aggregate of the nearest older bucket that has the measure. Gaps before the first such
	// bucket stay empty if there is no number before the interval either. The last such bucket fills gaps up to the end
	// of the interval.
	Previous
	// Linear interpolates each aggregate between the nearest older and the nearest newer bucket that have the measure,
	// by the buckets' start times; for a number outside of the interval, by its own time. Gaps before the first and
	// after the last of these stay empty: Linear does not extrapolate.
	Linear
)

var gapNames = [...]string{LeaveOut: "leave-out", Null: "null", Previous: "previous", Linear: "linear"}

// String returns the name of g.
func (g Gaps) String() string {
	if int(g) >= len(gapNames) {
		return "unknown"
	}
	return gapNames[g]
}

// MarshalText implements encoding.TextMarshaler. It fails with tsdb.ErrInvalid for a value that is not one of the
// constants.
func (g Gaps) MarshalText() ([]byte, error) {
	if int(g) >= len(gapNames) {
		return nil, g.invalid()
	}
	return []byte(gapNames[g]), nil
}

// UnmarshalText implements encoding.TextUnmarshaler. The error matches tsdb.ErrInvalid.
func (g *Gaps) UnmarshalText(text []byte) error {
	for i, name := range gapNames {
		if name == string(text) {
			*g = Gaps(i)
			return nil
		}
	}
	return invalid.New(tsdb.ErrInvalid, "gaps", invalid.Quote(string(text)), "leave-out, null, previous or linear")
}

func (g Gaps) invalid() error {
	return invalid.New(tsdb.ErrInvalid, "Gaps", g.String(), "LeaveOut, Null, Previous or Linear")
}
