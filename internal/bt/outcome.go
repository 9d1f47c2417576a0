package bt

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tidemark-go/tidemark/internal/ctxerr"
)

// State is the result of a write.
type State uint8

// The states. The zero state is none of them.
const (
	// Stored: the service confirmed that the write is applied.
	Stored State = iota + 1
	// Rejected: the write is not applied, and will not be.
	Rejected
	// Unknown: the write may or may not be applied, because a response was lost.
	Unknown
	// Journaled: the write is in a writer's journal, synced to disk, and will be delivered.
	Journaled
	// Unchanged: the point was left out of a sink that stores on change.
	Unchanged
)

// String returns "stored", "rejected", "unknown", "journaled" or "unchanged".
func (s State) String() string {
	names := [...]string{Stored: "stored", Rejected: "rejected", Unknown: "unknown", Journaled: "journaled", Unchanged: "unchanged"}
	if s == 0 || int(s) >= len(names) {
		return fmt.Sprintf("State(%d)", uint8(s))
	}
	return names[s]
}

// Outcome is the result of one write and the number of its attempts. Err is the last error if the write was not stored.
type Outcome struct {
	State    State
	Attempts int
	Err      error
}

// ErrUnguarded is wrapped by the error of a write whose outcome is unknown because it did not pass the guard.
var ErrUnguarded = errors.New("tsdb: the call did not pass the store's interceptors")

// refused reports whether err is a status with which the service refuses a request before it applies anything.
// ResourceExhausted is such a status only for a single entry: for a whole call, connections and proxies return it too,
// after the service may have applied it.
func refused(err error) bool {
	switch status.Code(err) {
	case codes.OK, codes.InvalidArgument, codes.NotFound, codes.AlreadyExists, codes.PermissionDenied,
		codes.Unauthenticated, codes.FailedPrecondition, codes.OutOfRange, codes.Unimplemented:
		return true
	}
	return false
}

// OfRow reports whether err rejects the row itself, whatever the state of the service: the service calls the row's
// contents invalid, or this package refused them. All other errors are conditions that pass or that an operator can
// fix: an outage, a missing table, family, view or permission, a routing policy, or a method that a proxy does not
// know.
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

// Tracker records the attempts at one write. If a response was lost, the write may have been applied: a later refusal
// does not change that, a later success does.
type Tracker struct {
	attempts     int32 // small, because writers hold many trackers
	maybeApplied bool
	stored       bool
	err          error
}

// Note records an attempt that ended with err. maybeApplied says that it may have been applied although it failed.
func (t *Tracker) Note(err error, maybeApplied bool) {
	t.attempts++
	t.err = err
	t.stored = err == nil
	t.maybeApplied = t.maybeApplied || err != nil && maybeApplied
}

// Outcome returns the result of the write so far.
func (t *Tracker) Outcome() Outcome {
	switch {
	case t.stored:
		return Outcome{State: Stored, Attempts: int(t.attempts)}
	case t.maybeApplied:
		return Outcome{State: Unknown, Attempts: int(t.attempts), Err: t.err}
	}
	return Outcome{State: Rejected, Attempts: int(t.attempts), Err: t.err}
}

// notSent returns the outcome of a write whose context ended before the first attempt.
func notSent(ctx context.Context) Outcome {
	return Outcome{State: Rejected, Err: ctxerr.Of(ctx)}
}

// ended adds the context's error to the error of a call whose context has ended: the status alone does not match it.
func ended(ctx context.Context, err error) error {
	if err == nil || ctx.Err() == nil || errors.Is(err, ctx.Err()) {
		return err
	}
	return fmt.Errorf("%w: %w", ctxerr.Of(ctx), err)
}

// Add records the combined outcome of several attempts that were made at once.
func (t *Tracker) Add(o Outcome) {
	t.attempts += int32(o.Attempts)
	t.err = o.Err
	t.stored = o.State == Stored
	t.maybeApplied = t.maybeApplied || o.State == Unknown
}

// Refuse records that the write is certainly not applied and will not be, whatever earlier attempts left open.
func (t *Tracker) Refuse(err error) { t.stored, t.maybeApplied, t.err = false, false, err }
