package tsdb

import (
	"fmt"

	"github.com/tidemark-go/tidemark/internal/bt"
)

// State says what became of a write: Stored, Rejected, Unknown or Journaled.
type State uint8

// The states of a write. The zero State is none of them.
const (
	// Stored: the write is applied.
	Stored State = State(bt.Stored)
	// Rejected: the write is not applied, and nothing that was sent can still apply it.
	Rejected State = State(bt.Rejected)
	// Unknown: the write may be applied or not, as an answer was lost. Writing a point again is harmless.
	Unknown State = State(bt.Unknown)
	// Journaled: the write is in a writer's journal, synced to disk, and will be delivered.
	Journaled State = State(bt.Journaled)
)

// String returns "stored", "rejected", "unknown" or "journaled".
func (s State) String() string { return bt.State(s).String() }

// Outcome is what became of one write.
type Outcome struct {
	State State
	// Attempts is how often the write was sent; 0 where it was refused before that.
	Attempts int
	// Err is why it was not stored; nil where it was, or will be: Stored or Journaled.
	Err error
}

// outcomeOf is the one place where what became of a write turns into an Outcome.
func outcomeOf(o bt.Outcome) Outcome {
	return Outcome{State: State(o.State), Attempts: o.Attempts, Err: o.Err}
}

func rejected(err error) Outcome { return Outcome{State: Rejected, Err: err} }

// done reports whether the write is safe.
func (o Outcome) done() bool { return o.State == Stored || o.State == Journaled }

// err returns the outcome as an error: nil where the write was stored, or will be.
func (o Outcome) err() error {
	if o.done() {
		return nil
	}
	return &WriteError{Outcome: o}
}

// WriteError is the error of a write that was not stored, or may not have been. It matches ErrRejected or ErrUnknown, and
// whatever its cause matches.
type WriteError struct{ Outcome Outcome }

// Error implements error.
func (e *WriteError) Error() string {
	switch e.Outcome.Attempts {
	case 0:
		return fmt.Sprintf("tsdb: write %s before it was sent: %v", e.Outcome.State, e.Outcome.Err)
	case 1:
		return fmt.Sprintf("tsdb: write %s: %v", e.Outcome.State, e.Outcome.Err)
	}
	return fmt.Sprintf("tsdb: write %s after %d attempts: %v", e.Outcome.State, e.Outcome.Attempts, e.Outcome.Err)
}

// Is reports whether target is the sentinel of the outcome's state.
func (e *WriteError) Is(target error) bool {
	if e == nil {
		return false
	}
	return target == ErrRejected && e.Outcome.State == Rejected || target == ErrUnknown && e.Outcome.State == Unknown
}

// Unwrap returns the cause.
func (e *WriteError) Unwrap() error {
	if e == nil {
		return nil
	}
	return e.Outcome.Err
}

// BatchError is the error of a call that writes many rows of which some were not stored. The others are.
type BatchError struct {
	// Total is how many rows the call was about.
	Total int
	// Failed lists the rows that were rejected or are unknown, by their index in the call: in the slice of PutMany, in the
	// order of deletion of DeleteRange, DeleteEntity and DeletePrefix, whose causes are a *PointError that names the point.
	Failed []Failure
}

// Failure is one row of a BatchError.
type Failure struct {
	Index   int
	Outcome Outcome
}

// Error implements error. It shows the first failure.
func (e *BatchError) Error() string {
	if len(e.Failed) == 0 {
		return fmt.Sprintf("tsdb: 0 of %d writes not stored", e.Total)
	}
	f := e.Failed[0]
	return fmt.Sprintf("tsdb: %d of %d writes not stored; the one at index %d is %s: %v", len(e.Failed), e.Total, f.Index, f.Outcome.State, f.Outcome.Err)
}

// Unwrap returns a *WriteError for each failure, in their order.
func (e *BatchError) Unwrap() []error {
	errs := make([]error, len(e.Failed))
	for i, f := range e.Failed {
		errs[i] = &WriteError{Outcome: f.Outcome}
	}
	return errs
}

// batchError returns a *BatchError where not all writes are safe, and nil where they are.
func batchError(outcomes []Outcome) error {
	var failed []Failure
	for i, o := range outcomes {
		if !o.done() {
			failed = append(failed, Failure{Index: i, Outcome: o})
		}
	}
	if failed == nil {
		return nil
	}
	return &BatchError{Total: len(outcomes), Failed: failed}
}
