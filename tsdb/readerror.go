package tsdb

import (
	"fmt"
)

// ReadError is the error of a call that reads many entities and failed for some of them, or found points that do not decode.
// The results of the other entities are valid.
type ReadError struct {
	// Total is the number of entities in the call.
	Total int
	// Failed lists the failed entities by their index in the call.
	Failed []ReadFailure
}

// ReadFailure is one failed entity of a ReadError. Err is the same error as in the entity's result: a *PointError or
// PointErrors if a payload does not decode, ErrInvalid if the entity does not fit the schema, the context's error if the time
// ran out first, or the error of the read.
type ReadFailure struct {
	Index  int
	Entity Entity
	Err    error
}

// Error returns the number of failures and the first one.
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

// Unwrap returns the cause of each failure, in order.
func (e *ReadError) Unwrap() []error {
	return causes(e.Failed, func(f ReadFailure) error { return f.Err })
}

// readError returns nil if no entity failed, and a *ReadError otherwise.
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
