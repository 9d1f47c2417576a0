package spool

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// lockFolder locks the folder, or fails with ErrLocked at once: it opens the file so that nobody else can open it.
// unlockFolder or the end of the process releases the lock.
func lockFolder(name string) (*os.File, error) {
	const sharingViolation = syscall.Errno(32)
	path, err := syscall.UTF16PtrFromString(name)
	if err != nil {
		return nil, err
	}
	h, err := syscall.CreateFile(path, syscall.GENERIC_READ|syscall.GENERIC_WRITE, 0, nil, syscall.OPEN_ALWAYS, syscall.FILE_ATTRIBUTE_NORMAL, 0)
	if errors.Is(err, sharingViolation) {
		return nil, fmt.Errorf("%w: %w", ErrLocked, err)
	}
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: name, Err: err}
	}
	return os.NewFile(uintptr(h), name), nil
}

func unlockFolder(f *os.File) error { return f.Close() }
