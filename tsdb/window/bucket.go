package window

import (
	"encoding/json"
	"time"

	"github.com/tidemark-go/tidemark/internal/instant"
)

// Bucket holds the aggregates of the points in one span of time. The caller may keep it. In JSON it is an object, and
// "values" holds the summaries by name.
type Bucket struct {
	// Start is where the bucket starts, and End where the next one starts, in the grid's zone. Both are those of the
	// grid even if the interval covers only part of the bucket.
	Start, End time.Time
	// Points is how many points the bucket has, with and without numbers.
	Points int64
	// Bad is how many more points the bucket has that could not be decoded. The iterator yields each as a
	// *tsdb.PointError.
	Bad int64
	// Entities is how many entities have points in the bucket. Only [Aggregator.ReadGroup] sets it.
	Entities int64
	// Partial says that the interval covers only part of the bucket.
	Partial bool
	// Open says that more points are expected, and that late points still change the bucket. Only package rollup sets
	// it.
	Open bool
	// Values are the summaries of the measures, in their order.
	Values []Summary
	// Incomplete is set if the program cannot compute the bucket as it is now, and says what is stored of it. Only a
	// rollup that is read by the catalogue has such buckets. Their Points are 0 if no measure is known.
	Incomplete *Incomplete
}

// MarshalJSON implements json.Marshaler.
func (b Bucket) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Start      instant.Time       `json:"start"`
		End        instant.Time       `json:"end"`
		Points     int64              `json:"points"`
		Bad        int64              `json:"bad,omitempty"`
		Entities   int64              `json:"entities,omitempty"`
		Partial    bool               `json:"partial,omitempty"`
		Open       bool               `json:"open,omitempty"`
		Values     map[string]Summary `json:"values"`
		Incomplete *incompleteJSON    `json:"incomplete,omitempty"`
	}{instant.Time{Time: b.Start}, instant.Time{Time: b.End}, b.Points, b.Bad, b.Entities, b.Partial, b.Open, byName(b.Values), b.Incomplete.json()})
}

func byName(values []Summary) map[string]Summary {
	out := make(map[string]Summary, len(values))
	for _, s := range values {
		out[s.Name] = s
	}
	return out
}

// cut reports whether the interval covers only part of the bucket.
func (f *frame) cut(b *Bucket) bool {
	return !f.Interval.Contains(b.Start) || !f.Interval.Contains(b.End.Add(-1))
}
