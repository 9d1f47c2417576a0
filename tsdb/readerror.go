package tsdb

import (
	"fmt"
)

// ReadError is the error of a call that reads many entities of which some could not be read, or hold a point that does not
// decode. The answers of the others are as good as without it.
type ReadError struct {
	// Total is how many entities the call was about.
	Total int
	// Failed lists those that failed, by their index in the call.
	Failed []ReadFailure
}

// ReadFailure is one entity of a ReadError. Err is what its answer holds too: a *PointError or PointErrors where a
// payload does not decode; an error that matches ErrInvalid for an entity that the schema cannot have, the context's where
// the time was over first; and otherwise why it could not be read.
type ReadFailure struct {
	Index  int
	Entity Entity
	Err    error
}

// Error implements error. It shows the first failure.
func (e *ReadError) Error() string {
	if len(e.Failed) == 0 {
		return fmt.Sprintf("tsdb: 0 of %d reads failed", e.Total)
	}
	f := e.Failed[0]
	what := "of " + f.Entity.String()
	if f.Entity == (Entity{}) {
		what = "the empty entity"
	}
	return fmt.Sprintf("tsdb: %d of %d reads failed; the one at index %d, %s: %v", len(e.Failed), e.Total, f.Index, what, f.Err)
}

// Unwrap returns the cause of each failure, in their order.
func (e *ReadError) Unwrap() []error {
	errs := make([]error, len(e.Failed))
	for i, f := range e.Failed {
		errs[i] = f.Err
	}
	return errs
}

// readError returns a *ReadError where an entity failed, and nil where none did.
func readError(entities []Entity, failed func(i int) error) error {
	var report []ReadFailure
	for i, e := range entities {
		if err := failed(i); err != nil {
			report = append(report, ReadFailure{Index: i, Entity: e, Err: err})
		}
	}
	if report == nil {
		return nil
	}
	return &ReadError{Total: len(entities), Failed: report}
}
