package bt

import (
	"context"
	"errors"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// State says what became of a write.
type State uint8

// The states. The zero state is none of them.
const (
	// Stored: the service answered that the write is applied.
	Stored State = iota + 1
	// Rejected: the write is not applied, and will not be.
	Rejected
	// Unknown: the write may be applied or not; an answer was lost.
	Unknown
)

// Outcome is what became of one write, after how many attempts; Err is the last cause where it was not stored.
type Outcome struct {
	State    State
	Attempts int
	Err      error
}

// ErrUnguarded is wrapped by the error of a write whose outcome could not be known because its connection does not carry
// the guard.
var ErrUnguarded = errors.New("tsdb: the client's connection does not carry the store's interceptors")

// ambiguous reports whether a call that ended with err may have been applied all the same. Only statuses by which the
// service refuses before it applies anything are certain.
func ambiguous(err error) bool {
	switch status.Code(err) {
	case codes.OK, codes.InvalidArgument, codes.NotFound, codes.AlreadyExists, codes.PermissionDenied,
		codes.Unauthenticated, codes.FailedPrecondition, codes.OutOfRange, codes.Unimplemented, codes.ResourceExhausted:
		return false
	}
	return true
}

// tracker gathers the attempts at one write. An earlier attempt whose answer was lost leaves a doubt that a later refusal
// cannot clear; a later success does.
type tracker struct {
	attempts int
	doubt    bool
	err      error
	stored   bool
}

func (t *tracker) note(err error) {
	t.attempts++
	t.err = err
	t.stored = err == nil
	if err != nil && ambiguous(err) {
		t.doubt = true
	}
}

func (t *tracker) outcome() Outcome {
	switch {
	case t.stored:
		return Outcome{State: Stored, Attempts: t.attempts}
	case t.doubt:
		return Outcome{State: Unknown, Attempts: t.attempts, Err: t.err}
	}
	return Outcome{State: Rejected, Attempts: t.attempts, Err: t.err}
}

// notSent is the outcome of a write for which there was no time left to try.
func notSent(ctx context.Context) Outcome {
	return Outcome{State: Rejected, Err: context.Cause(ctx)}
}
