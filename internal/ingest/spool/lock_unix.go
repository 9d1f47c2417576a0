//go:build unix && !solaris && !illumos && !aix

package spool

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// lockFolder locks the folder, or fails with ErrLocked at once. unlockFolder or the end of the process releases the
// lock.
func lockFolder(name string) (*os.File, error) {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		if errors.Is(err, syscall.EWOULDBLOCK) {
			err = fmt.Errorf("%w: %w", ErrLocked, err)
		}
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// unlockFolder releases the lock and closes its file. Closing alone does not release it while a process that this one
// is starting has the descriptor too, which it closes only when it runs its program.
func unlockFolder(f *os.File) error {
	return errors.Join(syscall.Flock(int(f.Fd()), syscall.LOCK_UN), f.Close())
}
