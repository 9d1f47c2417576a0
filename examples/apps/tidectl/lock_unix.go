//go:build unix

package main

import (
	"io"
	"path/filepath"
	"strconv"
	"syscall"
)

// holder says which process has a store's folder open; "" if it is not known. It does not close the file: that would
// release a lock which this process has.
func holder(dir string) string {
	fd, err := syscall.Open(filepath.Join(dir, "LOCK"), syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return ""
	}
	lock := syscall.Flock_t{Type: syscall.F_WRLCK, Whence: io.SeekStart}
	if err := syscall.FcntlFlock(uintptr(fd), syscall.F_GETLK, &lock); err != nil || lock.Type == syscall.F_UNLCK || lock.Pid <= 0 {
		return ""
	}
	return ": pid " + strconv.Itoa(int(lock.Pid))
}
