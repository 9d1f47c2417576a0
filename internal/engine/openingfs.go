package engine

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/tidemark-go/tidemark/internal/engine/pebblelog"
)

// openingFS is the file system while Pebble opens a folder. Pebble answers a failed write of that time by trying for ever:
// a full disk would hang Open. So the first one raises the fault and is hidden, and with it all that would be written or
// removed from then on. What is on disk stays as it was at that moment, which is what a crash would have left; Pebble comes
// to an end, and what it opened is thrown away. Once a folder is open, openingFS only slows down new table files after a fault.
type openingFS struct {
	vfs.FS
	fault *fault
	// unclosed are logs without an end. They may be there, but must not be needed.
	unclosed []string

	mu    sync.Mutex
	state openingState
	// fresh are the table files of which the manifest cannot know.
	fresh []string
}

type openingState uint8

const (
	opening openingState = iota
	openingFailed
	opened
)

// finish ends the time of opening. If a write has failed, it returns why.
func (fs *openingFS) finish() error {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if fs.state == opening {
		fs.state = opened
	}
	if fs.state == openingFailed {
		return fs.fault.err()
	}
	return nil
}

// tidy removes the table files that a failed opening has made and that nothing refers to: on a full disk, each attempt would
// otherwise leave less space than the one before. Nothing else may be using the folder.
func (fs *openingFS) tidy() {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if fs.state != openingFailed {
		return
	}
	for _, name := range fs.fresh {
		_ = fs.FS.Remove(name) // the next opening that succeeds removes it too
	}
}

// forget gives up the fresh tables: from here on, the manifest may name any of them.
func (fs *openingFS) forget() {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	fs.fresh = nil
}

func (fs *openingFS) failed() bool {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	return fs.state == openingFailed
}

// keep runs an operation that changes the disk, or hides that it fails.
func (fs *openingFS) keep(op func() error) error {
	if fs.failed() {
		return nil
	}
	err := op()
	if err == nil || errors.Is(err, os.ErrNotExist) {
		return err
	}
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if fs.state == opened {
		return err
	}
	fs.state = openingFailed
	fs.fault.raise(storageError(err))
	return nil
}

// file makes a file that keeps hiding, or one that takes everything and holds nothing.
func (fs *openingFS) file(name string, open func() (vfs.File, error)) (file vfs.File, err error) {
	if err = fs.keep(func() error { file, err = open(); return err }); err != nil {
		return nil, err
	}
	if file == nil {
		return pebblelog.LostFile{}, nil
	}
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if fs.state == opening && isTable(name) {
		fs.fresh = append(fs.fresh, name)
	}
	return &openingFile{File: file, fs: fs, manifest: pebblelog.IsManifest(fs.PathBase(name))}, nil
}

func isTable(name string) bool {
	return strings.HasSuffix(name, ".sst") || strings.HasSuffix(name, ".blob")
}

// retryPause is how long a new table file takes once there is a fault.
const retryPause = 50 * time.Millisecond

// Create makes a file. With a fault, table files come slowly: Pebble tries a failed flush again without a pause.
func (fs *openingFS) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	if !pebblelog.IsLog(name) && fs.fault.err() != nil && !fs.failed() {
		time.Sleep(retryPause)
	}
	return fs.file(name, func() (vfs.File, error) { return fs.FS.Create(name, category) })
}

// Open opens a file for reading. Pebble opens the logs that it needs, and no others.
func (fs *openingFS) Open(name string, opts ...vfs.OpenOption) (vfs.File, error) {
	if base := fs.PathBase(name); slices.Contains(fs.unclosed, base) {
		return nil, fmt.Errorf("%w: %s has no end, and is not the newest log", ErrDamaged, base)
	}
	return fs.FS.Open(name, opts...)
}

// OpenReadWrite opens a file.
func (fs *openingFS) OpenReadWrite(name string, category vfs.DiskWriteCategory, opts ...vfs.OpenOption) (vfs.File, error) {
	return fs.file(name, func() (vfs.File, error) { return fs.FS.OpenReadWrite(name, category, opts...) })
}

// OpenDir opens a folder.
func (fs *openingFS) OpenDir(name string) (vfs.File, error) {
	return fs.file(name, func() (vfs.File, error) { return fs.FS.OpenDir(name) })
}

// Link makes a file known under a second name.
func (fs *openingFS) Link(from, to string) error {
	return fs.keep(func() error { return fs.FS.Link(from, to) })
}

// Remove removes a file.
func (fs *openingFS) Remove(name string) error {
	return fs.keep(func() error { return fs.FS.Remove(name) })
}

// RemoveAll removes a folder.
func (fs *openingFS) RemoveAll(name string) error {
	return fs.keep(func() error { return fs.FS.RemoveAll(name) })
}

// Rename gives a file another name.
func (fs *openingFS) Rename(from, to string) error {
	return fs.keep(func() error { return fs.FS.Rename(from, to) })
}

// MkdirAll makes a folder.
func (fs *openingFS) MkdirAll(name string, mode os.FileMode) error {
	return fs.keep(func() error { return fs.FS.MkdirAll(name, mode) })
}

// Unwrap lets Pebble find the file system below.
func (fs *openingFS) Unwrap() vfs.FS { return fs.FS }

// openingFile is a file of which an openingFS hides the failures.
type openingFile struct {
	vfs.File
	fs       *openingFS
	manifest bool
}

func (f *openingFile) Write(p []byte) (int, error) {
	n := len(p)
	err := f.fs.keep(func() (err error) {
		if f.manifest {
			f.fs.forget()
		}
		n, err = f.File.Write(p)
		return err
	})
	if err == nil {
		n = len(p)
	}
	return n, err
}

func (f *openingFile) Close() error {
	err := f.File.Close()
	return f.fs.keep(func() error { return err })
}

func (f *openingFile) Sync() error     { return f.fs.keep(f.File.Sync) }
func (f *openingFile) SyncData() error { return f.fs.keep(f.File.SyncData) }

func (f *openingFile) SyncTo(length int64) (full bool, err error) {
	err = f.fs.keep(func() (err error) { full, err = f.File.SyncTo(length); return err })
	return full, err
}
