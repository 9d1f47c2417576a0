package spool

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"

	bolt "go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"
)

// journal is the open file. After a panic nothing of bbolt is called again: it may have left its locks held.
type journal struct {
	db    *bolt.DB
	file  *os.File
	stuck atomic.Bool // bbolt panicked where it may have held a lock
	// size is how large the file was at the last write, without what bbolt grows ahead. It belongs to the committer.
	size int64
}

// growBytes is how much the file grows ahead of what is needed.
const growBytes = 4 << 20

// outcome is what is known of a transaction.
type outcome int

const (
	undone outcome = iota
	committed
	unsure
)

// openJournal opens or makes a bbolt file. Its size and its structure have been checked, if it was there.
func openJournal(path string, o Options) (*journal, error) {
	j := &journal{}
	options := &bolt.Options{
		// No waiting: the folder's lock is held, so nobody should have the file.
		Timeout: time.Nanosecond,
		NoSync:  o.NoSync, NoGrowSync: o.NoSync,
		NoStatistics: true,
		// The list of free pages is written with each commit. Without that bbolt would look for them in a goroutine of its own
		// when a write fails, and what panics there ends the process.
		NoFreelistSync:  false,
		FreelistType:    bolt.FreelistMapType,
		PageSize:        pageBytes,
		InitialMmapSize: mapBytes(o.MaxBytes),
		OpenFile: func(name string, flag int, mode os.FileMode) (_ *os.File, err error) {
			j.file, err = os.OpenFile(name, flag, mode)
			return j.file, err
		},
	}
	try := func() (err error) {
		if j.db, err = bolt.Open(path, 0o600, options); err == nil {
			j.db.AllocSize = growBytes
		}
		return err
	}
	err := guard(try)
	if errors.Is(err, syscall.ENOMEM) {
		options.InitialMmapSize = 0 // The process may not have as much address space.
		err = guard(try)
	}
	if err == nil {
		return j, nil
	}
	if j.file != nil {
		_ = j.file.Close() // Closed already, unless bbolt panicked.
	}
	switch {
	case errors.Is(err, bolterrors.ErrTimeout):
		return nil, fmt.Errorf("%w: %w", ErrLocked, err)
	case errors.Is(err, bolterrors.ErrInvalid), errors.Is(err, bolterrors.ErrChecksum), errors.Is(err, bolterrors.ErrVersionMismatch):
		return nil, damaged("%w", err)
	}
	return nil, err
}

// mapBytes is how much address space is reserved, so that a file that grows is not mapped anew, for which bbolt makes
// writers wait for readers.
func mapBytes(limit int64) int {
	// Windows makes the file as large as its mapping.
	if strconv.IntSize < 64 || runtime.GOOS == "windows" {
		return 0
	}
	return int(min(2*limit, 1<<40)) + 1<<30
}

// view runs f in a transaction that reads.
func (j *journal) view(f func(*bolt.Tx) error) error {
	// bbolt panics with locks held where neither of the pages is good that say which pages count. It would do so again; look
	// first.
	if _, err := j.look(); err != nil {
		return err
	}
	begun := false
	err := guard(func() error {
		tx, err := j.db.Begin(false)
		begun = true
		if err != nil {
			return fmt.Errorf("%w: %w", ErrFailed, err)
		}
		defer tx.Rollback()
		return f(tx)
	})
	if !begun {
		j.stuck.Store(true)
	}
	return err
}

// look returns which page says what else counts.
func (j *journal) look() (meta []byte, err error) {
	if j.stuck.Load() {
		return nil, damaged("bbolt panicked before")
	}
	meta, good := newestMeta(j.file)
	if good == 0 {
		return nil, damaged("neither of the first two pages is good")
	}
	return meta, nil
}

// update runs f in a transaction that writes, and commits it. An error says what went wrong, the outcome what that means:
// undone is certain, and the next transaction may do better.
func (j *journal) update(f func(*bolt.Tx) error) (outcome, error) {
	result, id := undone, 0
	meta, err := j.look()
	if err == nil {
		// bbolt believes how long that page says it is, and would fill the memory.
		err = checkFreelist(j.file, meta)
	}
	if err != nil {
		return undone, err
	}
	err = guard(func() error {
		tx, err := j.db.Begin(true)
		if err != nil {
			return fmt.Errorf("%w: %w", ErrFailed, err)
		}
		id, j.size = tx.ID(), tx.Size()
		if err := f(tx); err != nil {
			return errors.Join(err, tx.Rollback())
		}
		result = unsure
		if err := tx.Commit(); err != nil {
			return err
		}
		result = committed
		return nil
	})
	var c *caught
	if errors.As(err, &c) {
		j.stuck.Store(true)
		return result, err
	}
	if err == nil || result != unsure {
		return result, err
	}
	// The last write of a commit is the page that makes it visible. Where this is not to be seen, nothing refers to what was
	// written; where it is, it may or may not have reached the disk.
	seen := 0
	looked := j.view(func(tx *bolt.Tx) error {
		seen = tx.ID()
		return nil
	})
	switch {
	case looked != nil:
		return unsure, errors.Join(err, looked)
	case seen == id:
		return unsure, fmt.Errorf("%w: %w", ErrFailed, err)
	}
	return undone, err
}

// close closes the file.
func (j *journal) close() error {
	if j.stuck.Load() {
		// The mapping stays until the process ends; the lock on the file goes with this.
		return j.file.Close()
	}
	return guard(j.db.Close)
}
