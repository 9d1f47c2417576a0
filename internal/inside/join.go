package inside

import (
	"time"

	"github.com/tidemark-go/tidemark/internal/sketch"
)

// JoinRule says how a measure's buckets are joined: a window.Kind, its window.Aggregates, and the options of Integral.
type JoinRule struct {
	Name       string // of the measure
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

// StoredNumbers is what the stored bucket of a measure has beside floats.
type StoredNumbers struct {
	Decimals                             int // the others are multiples of 10^-Decimals
	Sum, Min, Max, First, Last, Increase int64
	Covered                              time.Duration
	Sketch                               *sketch.Sketch
}
