package bt

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tidemark-go/tidemark/internal/ctxerr"
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
	// Journaled: the write is in a writer's journal, synced to disk, and will be delivered.
	Journaled
)

// String returns "stored", "rejected", "unknown" or "journaled".
func (s State) String() string {
	switch s {
	case Stored:
		return "stored"
	case Rejected:
		return "rejected"
	case Unknown:
		return "unknown"
	case Journaled:
		return "journaled"
	}
	return fmt.Sprintf("State(%d)", uint8(s))
}

// Outcome is what became of one write, after how many attempts; Err is the last cause where it was not stored.
type Outcome struct {
	State    State
	Attempts int
	Err      error
}

// ErrUnguarded is wrapped by the error of a write whose outcome could not be known because it did not pass the guard.
var ErrUnguarded = errors.New("tsdb: the call did not pass the store's interceptors")

// refused reports whether err is a status by which the service refuses before it applies anything. ResourceExhausted is
// one only as the status of an entry: for a call as a whole, connections and proxies make it too, after the fact.
func refused(err error) bool {
	switch status.Code(err) {
	case codes.OK, codes.InvalidArgument, codes.NotFound, codes.AlreadyExists, codes.PermissionDenied,
		codes.Unauthenticated, codes.FailedPrecondition, codes.OutOfRange, codes.Unimplemented:
		return true
	}
	return false
}

// OfRow reports whether err rejects the row itself, whatever the state of the service: the service calls invalid what the
// row holds, or this side refused the row by what it holds or finds. All other errors are conditions that pass or that an
// operator can fix: an outage, a missing table, family, view or right, a routing policy, a method that a proxy does not know.
func OfRow(err error) bool {
	if s, answered := status.FromError(err); answered {
		return s.Code() == codes.InvalidArgument || s.Code() == codes.OutOfRange
	}
	for _, other := range []error{
		context.Canceled, context.DeadlineExceeded, ErrUnguarded, ErrForeignRow, ErrFaster, errRowGone, errReplaced,
	} {
		if errors.Is(err, other) {
			return false
		}
	}
	return true
}

// Tracker gathers the attempts at one write. After a lost response the write may have been applied:
// a later refusal does not change that, a later success does.
type Tracker struct {
	attempts     int32 // writers hold many
	maybeApplied bool
	stored       bool
	err          error
}

// Note adds an attempt that ended with err; maybeApplied says that it may have been applied although it failed.
func (t *Tracker) Note(err error, maybeApplied bool) {
	t.attempts++
	t.err = err
	t.stored = err == nil
	t.maybeApplied = t.maybeApplied || err != nil && maybeApplied
}

// Outcome returns what became of the write so far.
func (t *Tracker) Outcome() Outcome {
	switch {
	case t.stored:
		return Outcome{State: Stored, Attempts: int(t.attempts)}
	case t.maybeApplied:
		return Outcome{State: Unknown, Attempts: int(t.attempts), Err: t.err}
	}
	return Outcome{State: Rejected, Attempts: int(t.attempts), Err: t.err}
}

// notSent is the outcome of a write for which there was no time left to try.
func notSent(ctx context.Context) Outcome {
	return Outcome{State: Rejected, Err: ctxerr.Of(ctx)}
}

// ended adds to the error of a call why its context has ended, where it has: the status alone does not match the
// context's errors.
func ended(ctx context.Context, err error) error {
	if err == nil || ctx.Err() == nil || errors.Is(err, ctx.Err()) {
		return err
	}
	return fmt.Errorf("%w: %w", ctxerr.Of(ctx), err)
}

// Add adds what became of several attempts that were made at once.
func (t *Tracker) Add(o Outcome) {
	t.attempts += int32(o.Attempts)
	t.err = o.Err
	t.stored = o.State == Stored
	t.maybeApplied = t.maybeApplied || o.State == Unknown
}

// Refuse records that the write is certainly not applied and will not be, whatever earlier attempts left open.
func (t *Tracker) Refuse(err error) { t.stored, t.maybeApplied, t.err = false, false, err }
