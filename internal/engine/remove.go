package engine

import (
	"errors"
	"fmt"
	"os"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// Remove removes a folder with the store that it holds. It removes nothing and fails with ErrLocked if an engine has
// the folder open, in this process or in another, with ErrForeign if there is no store in it, and with os.ErrNotExist
// if there is no folder.
func Remove(dir string) error {
	if _, err := os.Stat(dir); err != nil {
		return err
	}
	if _, marked, err := readMarker(vfs.Default, dir); err != nil || !marked {
		return errors.Join(err, fmt.Errorf("%w: %s", ErrForeign, dir))
	}
	lock, err := pebble.LockDirectory(dir, vfs.Default) // an engine locks its folder before it writes the marker
	if err != nil {
		return fmt.Errorf("%w: %s: %w", ErrLocked, dir, err)
	}
	if err := lock.Close(); err != nil { // some systems do not remove a file that is open
		return err
	}
	return os.RemoveAll(dir)
}
