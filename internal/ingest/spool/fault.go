package spool

import (
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/tidemark-go/tidemark/internal/diskerr"
	"github.com/tidemark-go/tidemark/internal/invalid"
)

var (
	// ErrLocked means that another process, or another Spool of this process, has the folder open.
	ErrLocked = invalid.Under(diskerr.ErrLocked, "spool: the folder is in use")
	// ErrDamaged means that the disk does not hold what was written. A spool that has found damage refuses every call.
	ErrDamaged = invalid.Under(diskerr.ErrDamaged, "spool: the journal is damaged")
	// ErrVersion means that a newer version of this package wrote the journal.
	ErrVersion = errors.New("spool: the journal has a newer format")
	// ErrFull means that an append would exceed Options.MaxBytes. Nothing was appended.
	ErrFull = errors.New("spool: the journal is full")
	// ErrInvalid means that an argument was refused.
	ErrInvalid = errors.New("spool: invalid input")
	// ErrClosed means that the spool is closed. The call did nothing.
	ErrClosed = errors.New("spool: closed")
	// ErrUnsure means that the call's change may or may not be on disk, now or later: the context ended, or the disk
	// failed, during the write. Every other error means that the call changed nothing.
	ErrUnsure = errors.New("spool: it is not known whether it was written")
	// ErrFailed means that the disk failed in a way after which memory and disk may differ. Open the folder again.
	ErrFailed = errors.New("spool: the disk failed")
)

// bboltPanic is a panic or a memory fault that bbolt ran into.
type bboltPanic struct{ value any }

func (c *bboltPanic) Error() string { return fmt.Sprintf("%v: %v", ErrDamaged, c.value) }

func (c *bboltPanic) Unwrap() error { return ErrDamaged }

// guard calls f and turns its panics and memory faults into errors of type *bboltPanic. bbolt panics on damaged pages,
// and a page beyond the end of a truncated file causes a memory fault.
func guard(f func() error) (err error) {
	before := debug.SetPanicOnFault(true)
	defer debug.SetPanicOnFault(before)
	defer func() {
		if r := recover(); r != nil {
			err = &bboltPanic{r}
		}
	}()
	return f()
}

// damaged returns an ErrDamaged with details.
func damaged(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrDamaged}, args...)...)
}
