package tsdb

import (
	"fmt"

	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/invalid"
)

// State is the state of a write: Stored, Rejected, Unknown, Journaled or Unchanged. The zero State is none of them.
type State uint8

// The states of a write.
const (
	// Stored means that the write is applied.
	Stored State = State(bt.Stored)
	// Rejected means that the write is not applied, and no request under way can still apply it.
	Rejected State = State(bt.Rejected)
	// Unknown means that the write may or may not be applied, because a response was lost. Writing a point again is
	// safe.
	Unknown State = State(bt.Unknown)
	// Journaled means that the write is in a writer's journal, synced to disk. The writer will deliver it.
	Journaled State = State(bt.Journaled)
	// Unchanged means that a sink with OnChange left the point out, because it says nothing new.
	Unchanged State = State(bt.Unchanged)
)

// String returns "stored", "rejected", "unknown", "journaled" or "unchanged".
func (s State) String() string { return bt.State(s).String() }

// Outcome is the result of one write.
type Outcome struct {
	State State
	// Attempts is how many times the write was sent. It is 0 if the write was refused before it was sent.
	Attempts int
	// Err is nil for Stored, Journaled and Unchanged; otherwise it is the cause.
	Err error
}

func outcomeOf(o bt.Outcome) Outcome {
	return Outcome{State: State(o.State), Attempts: o.Attempts, Err: o.Err}
}

func rejected(err error) Outcome { return Outcome{State: Rejected, Err: err} }

// done reports whether the write is stored or in a journal, or says nothing new.
func (o Outcome) done() bool {
	return o.State == Stored || o.State == Journaled || o.State == Unchanged
}

// err returns nil for a write that is done, and a *WriteError for any other.
func (o Outcome) err() error {
	if o.done() {
		return nil
	}
	return &WriteError{Outcome: o}
}

// refusal returns nil if a writer has taken the point, and the point's error otherwise, after it has passed the outcome
// to done, unless done is nil.
func (o Outcome) refusal(done func(Outcome)) error {
	if o.Err == nil {
		return nil
	}
	if done != nil {
		done(o)
	}
	return o.err()
}

// WriteError is the error of one write that is rejected or unknown. It matches ErrRejected or ErrUnknown, and all that
// its cause matches.
type WriteError struct{ Outcome Outcome }

// Error returns the state, the number of attempts and the cause.
func (e *WriteError) Error() string {
	e = invalid.OrZero(e)
	switch e.Outcome.Attempts {
	case 0:
		return fmt.Sprintf("tsdb: write %s before it was sent: %v", e.Outcome.State, e.Outcome.Err)
	case 1:
		return fmt.Sprintf("tsdb: write %s: %v", e.Outcome.State, e.Outcome.Err)
	}
	return fmt.Sprintf("tsdb: write %s after %d attempts: %v", e.Outcome.State, e.Outcome.Attempts, e.Outcome.Err)
}

// Is reports whether target is ErrRejected or ErrUnknown, as the state says.
func (e *WriteError) Is(target error) bool {
	e = invalid.OrZero(e)
	return target == ErrRejected && e.Outcome.State == Rejected || target == ErrUnknown && e.Outcome.State == Unknown
}

// Unwrap returns the cause.
func (e *WriteError) Unwrap() error {
	return invalid.OrZero(e).Outcome.Err
}

// BatchError is the error of a call that writes or deletes many rows and failed for some of them. It does not affect
// the other rows.
type BatchError struct {
	// Total is the number of rows in the call.
	Total int
	// Failed lists the rejected and unknown rows. Index is the index in the slice of the call, and for DeleteRange and
	// DeletePrefix the position in deletion order. The cause of a failed deletion is a *PointError, which names the
	// point.
	Failed []Failure
}

// Failure is one failed row of a BatchError.
type Failure struct {
	Index   int
	Outcome Outcome
}

// Error returns the number of failures and the first one.
func (e *BatchError) Error() string {
	e = invalid.OrZero(e)
	if len(e.Failed) == 0 {
		return fmt.Sprintf("tsdb: 0 of %d writes not stored", e.Total)
	}
	f := e.Failed[0]
	return fmt.Sprintf("tsdb: %d of %d writes not stored; the one at index %d is %s: %v", len(e.Failed), e.Total, f.Index, f.Outcome.State, f.Outcome.Err)
}

// Unwrap returns one *WriteError per failure, in order.
func (e *BatchError) Unwrap() []error {
	return causes(invalid.OrZero(e).Failed, func(f Failure) error { return &WriteError{Outcome: f.Outcome} })
}

// causes returns the error of each element.
func causes[E any](list []E, of func(E) error) []error {
	errs := make([]error, len(list))
	for i, e := range list {
		errs[i] = of(e)
	}
	return errs
}

// batchError returns nil if all writes are done, and a *BatchError otherwise.
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
