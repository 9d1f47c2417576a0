package engine

import (
	"errors"
	"strings"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// logFS is the file system as Pebble sees it. It changes three things about the write-ahead log.
//
// Each log begins in a new file. Pebble would rather write over one that it has no more use for, which saves the system a
// little and makes the end of a log impossible to tell (see checkLogs).
//
// A failed write of the log raises the fault and is then hidden from Pebble, which answers some of them by a panic that
// cannot be recovered from. All that is written to logs from then on is thrown away, so that what is on disk stays a whole
// prefix. No write is answered with success once the fault is raised.
//
// With the fault raised, new table files come slowly: Pebble tries a failed flush again without a pause.
type logFS struct {
	vfs.FS
	fault *fault
}

func isLog(name string) bool { return strings.HasSuffix(name, ".log") }

// retryPause is how long a new table file takes once the fault is raised.
const retryPause = 50 * time.Millisecond

// Create makes a file.
func (fs logFS) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	if !isLog(name) {
		if fs.fault.err() != nil {
			time.Sleep(retryPause)
		}
		return fs.FS.Create(name, category)
	}
	if fs.fault.err() != nil {
		return lostFile{}, nil
	}
	file, err := fs.FS.Create(name, category)
	if err != nil {
		fs.fault.raise(storageError(err))
		return lostFile{}, nil
	}
	return logFile{File: file, fault: fs.fault}, nil
}

// ReuseForWrite makes a new file in the place of an old one.
func (fs logFS) ReuseForWrite(oldName, newName string, category vfs.DiskWriteCategory) (vfs.File, error) {
	if err := fs.Remove(oldName); err != nil {
		fs.fault.raise(storageError(err))
	}
	return fs.Create(newName, category)
}

// OpenDir opens a folder, which is synced when a log is made in it.
func (fs logFS) OpenDir(name string) (vfs.File, error) {
	dir, err := fs.FS.OpenDir(name)
	if err != nil {
		return nil, err
	}
	return logFile{File: dir, fault: fs.fault}, nil
}

// Unwrap lets Pebble find the file system below.
func (fs logFS) Unwrap() vfs.FS { return fs.FS }

// logFile is a log that hides its failures.
type logFile struct {
	vfs.File
	fault *fault
}

// keep runs an operation, unless one has failed, and hides its failure.
func (f logFile) keep(op func() error) {
	if f.fault.err() != nil {
		return
	}
	if err := op(); err != nil {
		f.fault.raise(storageError(err))
	}
}

func (f logFile) Write(p []byte) (int, error) {
	f.keep(func() error { _, err := f.File.Write(p); return err })
	return len(p), nil
}

func (f logFile) Sync() error     { f.keep(f.File.Sync); return nil }
func (f logFile) SyncData() error { f.keep(f.File.SyncData); return nil }

func (f logFile) SyncTo(length int64) (full bool, err error) {
	f.keep(func() (err error) { full, err = f.File.SyncTo(length); return err })
	return full, nil
}

func (f logFile) Close() error {
	if err := f.File.Close(); err != nil {
		f.fault.raise(storageError(err))
	}
	return nil
}

// lostFile is a log that could not be made.
type lostFile struct{}

var errLostFile = errors.New("engine: the log could not be made")

func (lostFile) Read([]byte) (int, error)               { return 0, errLostFile }
func (lostFile) ReadAt([]byte, int64) (int, error)      { return 0, errLostFile }
func (lostFile) Write(p []byte) (int, error)            { return len(p), nil }
func (lostFile) WriteAt(p []byte, _ int64) (int, error) { return len(p), nil }
func (lostFile) Preallocate(int64, int64) error         { return nil }
func (lostFile) Stat() (vfs.FileInfo, error)            { return nil, errLostFile }
func (lostFile) Sync() error                            { return nil }
func (lostFile) SyncTo(int64) (bool, error)             { return false, nil }
func (lostFile) SyncData() error                        { return nil }
func (lostFile) Prefetch(int64, int64) error            { return nil }
func (lostFile) Fd() uintptr                            { return vfs.InvalidFd }
func (lostFile) Close() error                           { return nil }
