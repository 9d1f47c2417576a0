package window

import (
	"encoding/json"
	"time"
)

// Bucket is one stretch of time with what its points come to. It is the caller's to keep. As JSON it is an object in which
// "values" holds the summaries by name.
type Bucket struct {
	// Start and End are where the bucket starts and where the next one does, in the grid's zone. They are those of the grid
	// also where the interval covers only part of it.
	Start, End time.Time
	// Points is how many points lie in the bucket, with numbers or without.
	Points int64
	// Bad is how many points besides lie there that could not be decoded; the sequence has given each as a
	// *tsdb.PointError.
	Bad int64
	// Partial says that the interval covers only part of the bucket.
	Partial bool
	// Open says that more points are expected: what comes still changes the bucket. Only package rollup sets it.
	Open bool
	// Values are the summaries of the measures, in their order.
	Values []Summary
}

// MarshalJSON implements json.Marshaler. It fails where Start or End is not in the years 0 to 9999.
func (b Bucket) MarshalJSON() ([]byte, error) {
	values := make(map[string]Summary, len(b.Values))
	for _, s := range b.Values {
		values[s.Name] = s
	}
	return json.Marshal(struct {
		Start   time.Time          `json:"start"`
		End     time.Time          `json:"end"`
		Points  int64              `json:"points"`
		Bad     int64              `json:"bad,omitempty"`
		Partial bool               `json:"partial,omitempty"`
		Open    bool               `json:"open,omitempty"`
		Values  map[string]Summary `json:"values"`
	}{b.Start, b.End, b.Points, b.Bad, b.Partial, b.Open, values})
}

// cut reports whether the interval covers only part of the bucket.
func (f *Frame) cut(b *Bucket) bool {
	return !f.Interval.Contains(b.Start) || !f.Interval.Contains(b.End.Add(-1))
}
