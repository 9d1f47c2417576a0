package inside

import (
	"time"

	"github.com/tidemark-go/tidemark/internal/sketch"
)

// JoinNumber is the nearest number of a measure outside of an interval.
type JoinNumber struct {
	Found bool
	Time  time.Time
	Units int64 // in multiples of 10^-Decimals of the measure
	// Changed is set if the nearest number is not known, as its bucket changed then.
	Changed time.Time
}

// StoredNumbers are the numbers of a measure in a stored bucket. Those of the first line are multiples of 10^-Decimals,
// except Count and Resets.
type StoredNumbers struct {
	Count, Sum, Min, Max, First, Last, Increase, Resets int64
	FirstTime, LastTime                                 time.Time
	Integral                                            float64
	Covered                                             time.Duration
	Sketch                                              *sketch.Sketch
}
