package spool

import (
	"errors"
	"fmt"
	"runtime/debug"
)

var (
	// ErrLocked says that another process, or another Spool of this one, has the folder open.
	ErrLocked = errors.New("spool: the folder is in use")
	// ErrDamaged says that what is on disk is not what was written. A spool that has met damage refuses everything.
	ErrDamaged = errors.New("spool: the journal is damaged")
	// ErrVersion says that a newer version of this package wrote the journal.
	ErrVersion = errors.New("spool: the journal has a newer format")
	// ErrFull says that an append would go beyond Options.MaxBytes. Nothing was appended.
	ErrFull = errors.New("spool: the journal is full")
	// ErrInvalid says that an argument was refused.
	ErrInvalid = errors.New("spool: invalid input")
	// ErrClosed says that the spool is closed. What was asked for was not done.
	ErrClosed = errors.New("spool: closed")
	// ErrUnsure says that it is not known whether what was asked for is on disk, or will be: the context ended, or the disk
	// failed, while it was being written. Everything else than ErrUnsure means that it was not done.
	ErrUnsure = errors.New("spool: it is not known whether it was written")
	// ErrFailed says that the disk failed in a way after which memory and disk may differ. Open the folder again.
	ErrFailed = errors.New("spool: the disk failed")
)

// caught is a panic or a memory fault that bbolt met in the file.
type caught struct{ value any }

func (c *caught) Error() string { return fmt.Sprintf("%v: %v", ErrDamaged, c.value) }

func (c *caught) Unwrap() error { return ErrDamaged }

// guard calls f, and turns its panics and its faults into errors of type *caught. bbolt answers damaged pages with panics,
// and a page that lies beyond the end of a file cut short is a fault of memory.
func guard(f func() error) (err error) {
	before := debug.SetPanicOnFault(true)
	defer debug.SetPanicOnFault(before)
	defer func() {
		if r := recover(); r != nil {
			err = &caught{r}
		}
	}()
	return f()
}

// damaged makes an ErrDamaged with more to it.
func damaged(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrDamaged}, args...)...)
}
