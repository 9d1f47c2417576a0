package tsdb

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/tidemark-go/tidemark/internal/instant"
	"github.com/tidemark-go/tidemark/internal/invalid"
)

// Point is one value of one entity at one time. Reads return Time in UTC, truncated to the schema's precision.
//
// Its JSON is {"entity":"berlin/roof-7","time":"2026-07-01T12:00:00Z","value":…}, with "id" if it has one. The value's
// JSON is that of T. Unmarshalling leaves missing fields as they are. Writes refuse times after the year 9999; a point
// that was stored before they did has a time like "+058803-02-28T01:02:03Z" in JSON.
//
// A struct that embeds a Point has the Point's JSON and none for its other fields, unless it has methods of its own.
type Point[T any] struct {
	Entity Entity
	Time   time.Time
	ID     string // empty without Identity
	Value  T
}

type pointJSON[T any] struct {
	Entity Entity       `json:"entity"`
	Time   instant.Time `json:"time"`
	ID     string       `json:"id,omitempty"`
	Value  T            `json:"value"`
}

// MarshalJSON implements json.Marshaler.
func (p Point[T]) MarshalJSON() ([]byte, error) {
	return json.Marshal(pointJSON[T]{p.Entity, instant.Time{Time: p.Time}, p.ID, p.Value})
}

// UnmarshalJSON implements json.Unmarshaler.
func (p *Point[T]) UnmarshalJSON(data []byte) error {
	if p == nil {
		return invalid.New(ErrInvalid, "point", "nil", "a pointer to a Point")
	}
	from := pointJSON[T]{p.Entity, instant.Time{Time: p.Time}, p.ID, p.Value}
	err := json.Unmarshal(data, &from)
	*p = Point[T]{from.Entity, from.Time.Time, from.ID, from.Value}
	return err
}

// PointError is the error of one stored point that does not decode: its payload is corrupt (codec.ErrCorrupt) or in a
// format that the schema does not read (codec.ErrUnknownTag). Other points are not affected: a sequence that yields a
// *PointError continues. In the BatchError of a deletion it names a point that could not be deleted.
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
	return fmt.Sprintf("tsdb: point of %s at %s%s: %v", e.Entity, instant.Text(e.Time), id, e.Err)
}

// Unwrap returns the cause.
func (e *PointError) Unwrap() error { return invalid.OrZero(e).Err }

// PointErrors is the error of a call that returns several points, some of which do not decode. In the result these
// points have their entity, their time and a zero value. The errors are in the order of the result.
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
