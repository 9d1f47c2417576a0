//go:build unix && !solaris && !illumos && !aix

package spool

import (
	"syscall"
	"testing"
)

// A process that this one starts has copies of all descriptors until it runs its program. A closed journal opens again
// in the meantime.
func TestReopenWhileAProcessStarts(t *testing.T) {
	dir := t.TempDir()
	for range 2 {
		s, err := Open(dir, Options{})
		if err != nil {
			t.Fatal(err)
		}
		copied, err := syscall.Dup(int(s.lock.Fd()))
		if err != nil {
			t.Fatal(err)
		}
		defer syscall.Close(copied)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
