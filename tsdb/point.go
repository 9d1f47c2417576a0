package tsdb

import (
	"fmt"
	"time"
)

// Point is one value of one entity at one time. Reads give Time in UTC, cut off to the schema's precision.
//
// In JSON it is {"entity":"berlin/roof-7","time":"2026-07-01T12:00:00Z","value":…}, with an "id" if it has one. The value's JSON is
// that of T. What is missing in JSON is left as it is; calls refuse the zero Entity.
type Point[T any] struct {
	Entity Entity    `json:"entity"`
	Time   time.Time `json:"time"`
	ID     string    `json:"id,omitempty"` // in a schema with Identity; else empty
	Value  T         `json:"value"`
}

// PointError is about one stored point that could not be turned into a value: its payload does not decode
// (codec.ErrCorrupt) or is in a format that the schema does not read (codec.ErrUnknownTag). Its neighbours are not
// affected: a sequence that yields a *PointError goes on behind it.
type PointError struct {
	Entity Entity
	Time   time.Time
	ID     string // in a schema with Identity; else empty
	Err    error
}

// Error implements error. It names the point, but none of its payload beyond what the codec's own error shows.
func (e *PointError) Error() string {
	id := ""
	if e.ID != "" {
		id = " with ID " + e.ID
	}
	return fmt.Sprintf("tsdb: point of %s at %s%s: %v", e.Entity, e.Time.Format(time.RFC3339Nano), id, e.Err)
}

// Unwrap returns the cause.
func (e *PointError) Unwrap() error { return e.Err }

// PointErrors is the error of a call that returns several points of which some could not be decoded. Those stand in the
// result with their entity, their time and a zero value; Unwrap lists the errors in the order of the result.
type PointErrors []*PointError

// Error implements error.
func (e PointErrors) Error() string {
	switch len(e) {
	case 0:
		return "tsdb: no point failed to decode"
	case 1:
		return e[0].Error()
	}
	return fmt.Sprintf("%v (and %d more points that do not decode)", e[0], len(e)-1)
}

// Unwrap returns the errors, one a point.
func (e PointErrors) Unwrap() []error {
	errs := make([]error, len(e))
	for i, pe := range e {
		errs[i] = pe
	}
	return errs
}
