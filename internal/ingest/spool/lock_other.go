//go:build !windows && (!unix || solaris || illumos || aix)

package spool

import "os"

// lockFolder does not lock on this system; bbolt's own lock on the journal's file is the only one.
func lockFolder(name string) (*os.File, error) {
	return os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
}

func unlockFolder(f *os.File) error { return f.Close() }
