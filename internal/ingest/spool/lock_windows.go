package spool

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// lockFolder takes the folder's lock, or fails with ErrLocked at once: the file is opened so that nobody else can open it.
// Closing the file releases it; so does the end of the process.
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
