package engine

import (
	"errors"
	"io"
	"os"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/tidemark-go/tidemark/internal/private"
)

// privateFS is the system's file system, but only the owner may access the folders and files that it creates. Pebble
// leaves the modes of files to the umask.
type privateFS struct{ vfs.FS }

// MkdirAll creates a folder, or makes an existing one private.
func (privateFS) MkdirAll(dir string, _ os.FileMode) error { return private.Folder(dir) }

// Create makes a file.
func (fs privateFS) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	file, err := fs.FS.Create(name, category)
	return keepPrivate(name, file, err)
}

// OpenReadWrite opens or creates a file.
func (fs privateFS) OpenReadWrite(name string, category vfs.DiskWriteCategory, opts ...vfs.OpenOption) (vfs.File, error) {
	file, err := fs.FS.OpenReadWrite(name, category, opts...)
	return keepPrivate(name, file, err)
}

// Lock creates the lock file and locks it.
func (fs privateFS) Lock(name string) (io.Closer, error) {
	lock, err := fs.FS.Lock(name)
	return keepPrivate(name, lock, err)
}

// Unwrap lets Pebble find the file system below.
func (fs privateFS) Unwrap() vfs.FS { return fs.FS }

// keepPrivate sets the mode of a newly opened file. Nobody else could open it before, because its folder is private.
func keepPrivate[F io.Closer](name string, file F, err error) (F, error) {
	var none F
	if err != nil {
		return none, err
	}
	if err := os.Chmod(name, private.FileMode); err != nil {
		return none, errors.Join(err, file.Close())
	}
	return file, nil
}
