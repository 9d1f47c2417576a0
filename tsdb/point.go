package tsdb

import (
	"fmt"
	"time"

	"github.com/tidemark-go/tidemark/internal/invalid"
)

// Point is one value of one entity at one time. Reads return Time in UTC, truncated to the schema's precision.
//
// Its JSON is {"entity":"berlin/roof-7","time":"2026-07-01T12:00:00Z","value":…}, with "id" if it has one. The value's JSON
// is that of T. Unmarshalling leaves missing fields as they are.
type Point[T any] struct {
	Entity Entity    `json:"entity"`
	Time   time.Time `json:"time"`
	ID     string    `json:"id,omitempty"` // empty without Identity
	Value  T         `json:"value"`
}

// PointError is the error of one stored point that does not decode: its payload is corrupt (codec.ErrCorrupt) or in a format
// that the schema does not read (codec.ErrUnknownTag). Other points are not affected: a sequence that yields a *PointError
// continues. In the BatchError of a deletion it names a point that could not be deleted.
type PointError struct {
	Entity Entity
	Time   time.Time
	ID     string // empty without Identity
	Err    error
}

// Error names the point. It shows no payload, except what the codec's error quotes.
func (e *PointError) Error() string {
	e = invalid.OrZero(e)
	id := ""
	if e.ID != "" {
		id = " with ID " + e.ID
	}
	return fmt.Sprintf("tsdb: point of %s at %s%s: %v", e.Entity, e.Time.Format(time.RFC3339Nano), id, e.Err)
}

// Unwrap returns the cause.
func (e *PointError) Unwrap() error { return invalid.OrZero(e).Err }

// PointErrors is the error of a call that returns several points, some of which do not decode. In the result these points
// have their entity, their time and a zero value. The errors are in the order of the result.
type PointErrors []*PointError

// Error returns the first error and the number of others.
func (e PointErrors) Error() string {
	switch len(e) {
	case 0:
		return "tsdb: no point failed to decode"
	case 1:
		return e[0].Error()
	}
	return fmt.Sprintf("%v (and %d more points that do not decode)", e[0], len(e)-1)
}

// Unwrap returns one error per point.
func (e PointErrors) Unwrap() []error {
	return causes(e, func(p *PointError) error { return p })
}
