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

// openingFS is the file system while Pebble opens a folder. During that time Pebble retries a failed write forever, so
// a full disk would hang Open. Therefore openingFS hides the first failed write from Pebble, raises the fault, and
// ignores all later writes and removals. The disk stays as it was at that moment, as after a crash; Pebble finishes,
// and the opened database is discarded.
//
// Once a folder is open, openingFS slows down the creation of table files after a fault, and refuses changes of the
// manifest. Nobody knows whether the disk has a change that failed, and Pebble, which would end its process, would make
// it a second time: then the folder does not open, or its next compaction panics.
type openingFS struct {
	vfs.FS
	fault *fault
	// unclosed are logs without an end mark. They may exist, but must not be needed.
	unclosed []string

	mu    sync.Mutex
	state openingState
	// fresh are the table files that the manifest cannot name yet.
	fresh []string
}

type openingState uint8

const (
	opening openingState = iota
	openingFailed
	opened
)

// finish ends the time of opening. It returns the first failure of a write, if any.
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

// removeFresh removes the table files that a failed opening created and that nothing refers to: on a full disk, each
// attempt would otherwise leave less space. Nothing else may be using the folder.
func (fs *openingFS) removeFresh() {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if fs.state != openingFailed {
		return
	}
	for _, name := range fs.fresh {
		_ = fs.FS.Remove(name) // the next successful opening removes it too
	}
}

// keepFresh clears fresh: from now on, the manifest may name any of them.
func (fs *openingFS) keepFresh() {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	fs.fresh = nil
}

func (fs *openingFS) failed() bool {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	return fs.state == openingFailed
}

// keep runs an operation that changes the disk, and hides its failure.
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

// file returns a file that hides failures, or, after a failure, one that discards all writes.
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

// retryPause is how long creating a table file takes after a fault.
const retryPause = 50 * time.Millisecond

// Create creates a file. After a fault it creates table files slowly, because Pebble retries a failed flush without a
// pause.
func (fs *openingFS) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	if !pebblelog.IsLog(name) && fs.fault.err() != nil && !fs.failed() {
		time.Sleep(retryPause)
	}
	return fs.file(name, func() (vfs.File, error) { return fs.FS.Create(name, category) })
}

// Open opens a file for reading. Pebble opens only the logs that it needs.
func (fs *openingFS) Open(name string, opts ...vfs.OpenOption) (vfs.File, error) {
	if base := fs.PathBase(name); slices.Contains(fs.unclosed, base) {
		return nil, fmt.Errorf("%w: %s has no end mark, and is not the newest log", ErrDamaged, base)
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

// Link gives a file a second name.
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

// Rename renames a file.
func (fs *openingFS) Rename(from, to string) error {
	return fs.keep(func() error { return fs.FS.Rename(from, to) })
}

// MkdirAll makes a folder.
func (fs *openingFS) MkdirAll(name string, mode os.FileMode) error {
	return fs.keep(func() error { return fs.FS.MkdirAll(name, mode) })
}

// Unwrap lets Pebble find the file system below.
func (fs *openingFS) Unwrap() vfs.FS { return fs.FS }

// openingFile is a file whose failures an openingFS hides.
type openingFile struct {
	vfs.File
	fs       *openingFS
	manifest bool
}

func (f *openingFile) Write(p []byte) (int, error) {
	n := len(p)
	err := f.fs.keep(func() (err error) {
		if f.manifest {
			f.fs.keepFresh()
			if err := f.fs.fault.err(); err != nil { // raised before Pebble repeats a change
				return err
			}
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
