package pebblelog

import (
	"encoding/binary"
	"errors"
	"runtime"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// FS is the file system as Pebble sees it. It changes four things about the write-ahead log.
//
// Each log begins in a new file. Pebble would write over an old log instead, which is a little cheaper and makes the
// end of a log impossible to recognize.
//
// A failed write of the log is reported to Fail and hidden from Pebble, which answers some of them by a panic that
// cannot be recovered from. FS discards everything that is written to logs afterwards, so that what is on disk stays a
// whole prefix. The engine must not acknowledge a write once Failed returns an error.
//
// Each chunk states how much of the log was synced when it was written. Pebble's own figure leaves out the padding of
// blocks, and soon is too small to tell damage from a torn end.
//
// Space is allocated in small steps ahead of the end. Pebble's step is a memtable and a tenth, which every log would
// keep until it is removed.
type FS struct {
	vfs.FS
	Failed func() error // returns the first failure, nil for none
	Fail   func(error)  // records a failure
}

// preallocateStep is how much space for a log is allocated at once, in bytes.
const preallocateStep = 1 << 20

// Create creates a file.
func (fs FS) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	if !IsLog(name) {
		return fs.FS.Create(name, category)
	}
	if fs.Failed() != nil {
		return LostFile{}, nil
	}
	file, err := fs.FS.Create(name, category)
	if err != nil {
		fs.Fail(err)
		return LostFile{}, nil
	}
	number, _ := logNumber(fs.PathBase(name))
	return &logFile{File: file, fs: fs, number: uint32(number)}, nil
}

// ReuseForWrite creates a new file instead of reusing an old one.
func (fs FS) ReuseForWrite(oldName, newName string, category vfs.DiskWriteCategory) (vfs.File, error) {
	if err := fs.Remove(oldName); err != nil {
		fs.Fail(err)
	}
	return fs.Create(newName, category)
}

// OpenDir opens a folder. Pebble syncs it after it creates a log in it.
func (fs FS) OpenDir(name string) (vfs.File, error) {
	dir, err := fs.FS.OpenDir(name)
	if err != nil {
		return nil, err
	}
	return &folder{logFile{File: dir, fs: fs}}, nil
}

// logFile is a log that hides write errors from Pebble. One goroutine at a time writes and syncs it.
type logFile struct {
	vfs.File
	fs       FS
	number   uint32
	written  int64
	synced   int64 // bytes
	reserved int64 // allocated on disk
	buf      []byte
}

// try runs an operation, unless one has failed before. It reports an error to Fail and hides it from Pebble.
func (f *logFile) try(op func() error) {
	if f.fs.Failed() != nil {
		return
	}
	if err := op(); err != nil {
		f.fs.Fail(err)
	}
}

// Preallocate does nothing: Write allocates the space.
func (f *logFile) Preallocate(int64, int64) error { return nil }

func (f *logFile) Write(p []byte) (int, error) {
	for f.reserved < f.written+int64(len(p)) {
		// An error is ignored: if the disk is full, the write fails too.
		_ = f.File.Preallocate(f.reserved, preallocateStep)
		f.reserved += preallocateStep
	}
	f.buf = append(f.buf[:0], p...)
	stampLog(f.buf, f.number, f.synced)
	f.try(func() error { _, err := f.File.Write(f.buf); return err })
	f.written += int64(len(p))
	// A sync follows. Writers that are ready go first and share it; under load this halves the longest waits for syncs.
	runtime.Gosched()
	return len(p), nil
}

// stampLog writes into each chunk of p how much of the log is synced.
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
	f.try(func() error {
		err := op()
		if err == nil {
			f.synced = f.written
		}
		return err
	})
	return nil
}

func (f *logFile) SyncTo(length int64) (full bool, err error) {
	f.try(func() (err error) { full, err = f.File.SyncTo(length); return err })
	return full, nil
}

func (f *logFile) Close() error {
	if err := f.File.Close(); err != nil {
		f.fs.Fail(err)
	}
	return nil
}

// folder hides sync errors from Pebble. Several goroutines may sync it at once.
type folder struct{ logFile }

func (f *folder) Sync() error     { f.try(f.File.Sync); return nil }
func (f *folder) SyncData() error { f.try(f.File.SyncData); return nil }

// LostFile is a log that could not be created. It accepts every write and stores nothing.
type LostFile struct{}

var errLostFile = errors.New("engine: the log could not be created")

func (LostFile) Read([]byte) (int, error)               { return 0, errLostFile }
func (LostFile) ReadAt([]byte, int64) (int, error)      { return 0, errLostFile }
func (LostFile) Write(p []byte) (int, error)            { return len(p), nil }
func (LostFile) WriteAt(p []byte, _ int64) (int, error) { return len(p), nil }
func (LostFile) Preallocate(int64, int64) error         { return nil }
func (LostFile) Stat() (vfs.FileInfo, error)            { return nil, errLostFile }
func (LostFile) Sync() error                            { return nil }
func (LostFile) SyncTo(int64) (bool, error)             { return false, nil }
func (LostFile) SyncData() error                        { return nil }
func (LostFile) Prefetch(int64, int64) error            { return nil }
func (LostFile) Fd() uintptr                            { return vfs.InvalidFd }
func (LostFile) Close() error                           { return nil }
