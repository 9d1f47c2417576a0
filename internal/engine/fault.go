package engine

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tidemark-go/tidemark/internal/diskerr"
)

// Errors of Open. Match them with errors.Is.
var (
	// ErrLocked means that another process, or another engine of this process, has the folder open.
	ErrLocked = diskerr.ErrLocked
	// ErrDamaged means that the disk does not hold what was written. Damaged data is never served.
	ErrDamaged = diskerr.ErrDamaged
	// ErrVersion means that a newer version of the engine wrote the folder.
	ErrVersion = errors.New("a newer version wrote the folder")
	// ErrForeign means that the folder holds a Pebble database that is not an engine's.
	ErrForeign = errors.New("the folder holds something else")
	// ErrClosed means that the engine has been closed.
	ErrClosed = errors.New("engine: closed")
	// ErrStorage means that the file system refused an operation: the disk or the quota is full, the disk is not
	// writable, or too many files are open. It also wraps the system's own error, such as syscall.ENOSPC. After a write
	// fails with it, the engine accepts no more writes until it is opened again.
	ErrStorage = diskerr.ErrStorage
)

// fault holds the first failure after which an engine must refuse writes. A log that failed once may have lost writes
// in its middle, and a table that cannot be compacted blocks writers forever.
type fault struct {
	first  atomic.Pointer[faultState]
	broken atomic.Bool   // reads are unreliable too
	raised chan struct{} // closed at the first failure
	// all means that every failure breaks reads too, because it is unknown which rows are on disk.
	all bool
}

type faultState struct{ err error }

func newFault(all bool) *fault { return &fault{raised: make(chan struct{}), all: all} }

// raise records a failure, if it is the first.
func (f *fault) raise(err error) {
	if f.first.CompareAndSwap(nil, &faultState{err: err}) {
		close(f.raised)
	}
	if f.all {
		f.broken.Store(true)
	}
}

// err returns the failure, or nil.
func (f *fault) err() error {
	if s := f.first.Load(); s != nil {
		return s.err
	}
	return nil
}

// storageError classifies an error of Pebble's.
func storageError(err error) error {
	if pebble.IsCorruptionError(err) {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return fmt.Errorf("%w: %w", ErrStorage, err)
}

// statusOf returns the status for an error of the engine's own. Clients retry none of the codes of a closed or failed
// engine, because it does not recover while they wait. In process, the error still matches its cause.
func statusOf(err error) error {
	if err == nil {
		return nil
	}
	if _, ok := status.FromError(err); ok {
		return err
	}
	code := codes.Internal
	switch {
	case errors.Is(err, ErrDamaged), errors.Is(err, ErrStorage), pebble.IsCorruptionError(err):
		// Not FailedPrecondition: it means that nothing was written, but a failed sync may have written everything.
		code = codes.DataLoss
	case errors.Is(err, ErrClosed):
		code = codes.FailedPrecondition
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return status.FromContextError(err).Err()
	}
	return &statusError{status: status.New(code, err.Error()), cause: err}
}

// withStatus is statusOf of a result's error.
func withStatus[T any](result T, err error) (T, error) { return result, statusOf(err) }

// statusError is an error with a status that still matches its cause.
type statusError struct {
	status *status.Status
	cause  error
}

func (e *statusError) Error() string              { return e.status.Err().Error() }
func (e *statusError) Unwrap() error              { return e.cause }
func (e *statusError) GRPCStatus() *status.Status { return e.status }

func invalidf(format string, args ...any) error {
	return status.Errorf(codes.InvalidArgument, format, args...)
}

func notFoundf(format string, args ...any) error {
	return status.Errorf(codes.NotFound, format, args...)
}

func deniedf(format string, args ...any) error {
	return status.Errorf(codes.PermissionDenied, format, args...)
}

func unimplementedf(format string, args ...any) error {
	return status.Errorf(codes.Unimplemented, format, args...)
}
