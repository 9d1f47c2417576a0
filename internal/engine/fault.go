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

// Errors that Open returns, to be told apart with errors.Is.
var (
	// ErrLocked says that another process, or another engine of this one, has the folder open.
	ErrLocked = diskerr.ErrLocked
	// ErrDamaged says that what is on disk is not what was written. Nothing is served of it.
	ErrDamaged = diskerr.ErrDamaged
	// ErrVersion says that a newer version of the engine wrote the folder.
	ErrVersion = errors.New("a newer version wrote the folder")
	// ErrForeign says that the folder holds a Pebble database that is not an engine's.
	ErrForeign = errors.New("the folder holds something else")
	// ErrClosed says that the engine has been closed.
	ErrClosed = errors.New("engine: closed")
	// ErrStorage says that the file system refused an operation: the disk or the quota is full, it cannot be written, too
	// many files are open. The system's own error, such as syscall.ENOSPC, is wrapped too. A write that fails so ends
	// writing until the engine is opened again.
	ErrStorage = diskerr.ErrStorage
)

// fault holds the first failure after which an engine must not take writes any more. Going on would be worse: a log that
// failed once may have lost writes in its middle, and a table that cannot be compacted stalls writers for ever.
type fault struct {
	first  atomic.Pointer[faultState]
	broken atomic.Bool   // not even reads can be trusted
	raised chan struct{} // closed once there is a failure
	// all says that every failure breaks reads too: it is not known which rows are on disk.
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

// statusOf gives the status that an error of the engine's own goes out with. Clients retry none of the codes of a closed or
// failed engine: it does not recover while they wait. In process, the error goes on matching what caused it.
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
		// Not FailedPrecondition: it says that nothing was written, and a sync that failed may have written all of it.
		code = codes.DataLoss
	case errors.Is(err, ErrClosed):
		code = codes.FailedPrecondition
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return status.FromContextError(err).Err()
	}
	return &statusError{status: status.New(code, err.Error()), cause: err}
}

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
