package catalog

// Rollup is what the catalogue knows of a rollup of a dataset.
type Rollup struct {
	Name string `json:"name"`
	// Kind is derived, stream, message or once.
	Kind string `json:"kind"`
	// Every and Zone are the grid of its buckets, as package window writes and time.LoadLocation reads them.
	Every string `json:"every"`
	Zone  string `json:"zone"`
	// From is the finer rollup that a derived one is computed from; empty for the points.
	From string `json:"from,omitempty"`
	// Span is how much of time a row holds, and Step how much a mark stands for, in milliseconds.
	Span int64 `json:"span_ms"`
	Step int64 `json:"step_ms,omitempty"`
	// Late is how long after its end a bucket is still open, in milliseconds.
	Late     int64           `json:"late_ms"`
	Class    Class           `json:"class"`
	Measures []RollupMeasure `json:"measures"`
}

// RollupMeasure is what the catalogue knows of a measure: numbers are stored as whole multiples of 10^-Decimals.
type RollupMeasure struct {
	Name       string   `json:"name"`
	Decimals   int      `json:"decimals"`
	Max        string   `json:"max"`        // the greatest magnitude, as a decimal number
	Aggregates []string `json:"aggregates"` // of count, sum, min, max
}

// The kinds of rollups.
const (
	Derived   = "derived"
	ByStream  = "stream"
	ByMessage = "message"
	Once      = "once"
)
