//go:build !windows && (!unix || solaris || illumos || aix)

package spool

import "os"

// lockFolder cannot lock here; bbolt's own lock on the journal's file is all there is.
func lockFolder(name string) (*os.File, error) {
	return os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
}
