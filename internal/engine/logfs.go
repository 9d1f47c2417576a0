package engine

import (
	"encoding/binary"
	"errors"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// logFS is the file system as Pebble sees it. It changes four things about the write-ahead log.
//
// Each log begins in a new file. Pebble would rather write over one that it has no more use for, which saves the system a
// little and makes the end of a log impossible to tell (see checkLogs).
//
// A failed write of the log raises the fault and is then hidden from Pebble, which answers some of them by a panic that
// cannot be recovered from. All that is written to logs from then on is thrown away, so that what is on disk stays a whole
// prefix. No write is answered with success once the fault is raised.
//
// Each chunk says how much of the log was synced when it was written. Pebble's own figure leaves out what filled a block,
// and is soon too small to tell damage from a torn end.
//
// Space is laid out in small steps ahead of the end. Pebble's step is a memtable and a tenth, which every log would keep
// until it is removed.
//
// With the fault raised, new table files come slowly: Pebble tries a failed flush again without a pause.
type logFS struct {
	*openingFS
	fault *fault
}

// logAhead is the step in which space for a log is laid out.
const logAhead = 1 << 20

// retryPause is how long a new table file takes once the fault is raised.
const retryPause = 50 * time.Millisecond

// Create makes a file.
func (fs logFS) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	if !isLog(name) {
		if fs.fault.err() != nil && !fs.failed() {
			time.Sleep(retryPause)
		}
		return fs.openingFS.Create(name, category)
	}
	if fs.fault.err() != nil {
		return lostFile{}, nil
	}
	file, err := fs.openingFS.Create(name, category)
	if err != nil {
		fs.fault.raise(storageError(err))
		return lostFile{}, nil
	}
	number, _ := logNumber(fs.PathBase(name))
	return &logFile{File: file, fault: fs.fault, number: uint32(number)}, nil
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
	dir, err := fs.openingFS.OpenDir(name)
	if err != nil {
		return nil, err
	}
	return &logFile{File: dir, fault: fs.fault}, nil
}

// logFile is a log that hides its failures, or a folder. One goroutine at a time writes and syncs a log.
type logFile struct {
	vfs.File
	fault    *fault
	number   uint32
	written  int64
	synced   int64 // of what is written
	reserved int64 // laid out on disk
	buf      []byte
}

// keep runs an operation, unless one has failed, and hides its failure.
func (f *logFile) keep(op func() error) {
	if f.fault.err() != nil {
		return
	}
	if err := op(); err != nil {
		f.fault.raise(storageError(err))
	}
}

// Preallocate does nothing: Write lays out the space.
func (f *logFile) Preallocate(int64, int64) error { return nil }

func (f *logFile) Write(p []byte) (int, error) {
	for f.reserved < f.written+int64(len(p)) {
		// A disk that cannot do it, or has no space left, says so when it is written to.
		_ = f.File.Preallocate(f.reserved, logAhead)
		f.reserved += logAhead
	}
	f.buf = append(f.buf[:0], p...)
	stampLog(f.buf, f.number, f.synced)
	f.keep(func() error { _, err := f.File.Write(f.buf); return err })
	f.written += int64(len(p))
	return len(p), nil
}

// stampLog writes into the chunks that p consists of how much of their log is synced.
func stampLog(p []byte, number uint32, synced int64) {
	for len(p) > offsetHeader && headerSize(p[6], &number) == offsetHeader {
		end := offsetHeader + int(binary.LittleEndian.Uint16(p[4:]))
		if end > len(p) || binary.LittleEndian.Uint32(p[7:]) != number {
			return
		}
		binary.LittleEndian.PutUint64(p[11:], uint64(synced))
		binary.LittleEndian.PutUint32(p, chunkSum(p[6:end]))
		p = p[end:]
	}
}

func (f *logFile) Sync() error     { return f.sync(f.File.Sync) }
func (f *logFile) SyncData() error { return f.sync(f.File.SyncData) }

func (f *logFile) sync(op func() error) error {
	f.keep(func() error {
		err := op()
		if err == nil {
			f.synced = f.written
		}
		return err
	})
	return nil
}

func (f *logFile) SyncTo(length int64) (full bool, err error) {
	f.keep(func() (err error) { full, err = f.File.SyncTo(length); return err })
	return full, nil
}

func (f *logFile) Close() error {
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
