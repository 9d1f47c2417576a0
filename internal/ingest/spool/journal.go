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

// journal is the open file. After a panic in bbolt the journal calls bbolt no more: bbolt may still hold its locks.
type journal struct {
	db    *bolt.DB
	file  *os.File
	stuck atomic.Bool // bbolt panicked and may hold a lock
	// sync makes a commit durable; nil for no syncing.
	sync func(interface{ Sync() error }) error
	// size is how large the file was at the last write, without the bytes that bbolt grows ahead. Only the committer
	// uses it.
	size int64
}

// growBytes is how far ahead of the need the file grows.
const growBytes = 4 << 20

// outcome says what became of a transaction.
type outcome int

const (
	undone outcome = iota
	committed
	unsure
)

// openJournal opens or creates a bbolt file. The caller has checked the size and structure of an existing file.
func openJournal(path string, o Options) (*journal, error) {
	j := &journal{}
	if !o.NoSync {
		j.sync = o.syncFile
	}
	options := &bolt.Options{
		// bbolt need not wait for its lock: the folder's lock is held, so nobody else should have the file open.
		Timeout: time.Nanosecond,
		// bbolt would sync before and after it writes a commit's meta page. update syncs once, after it: Open
		// recognises a commit that is torn, and then takes the one before. No commit overwrites pages of the one
		// before.
		NoSync: true, NoGrowSync: o.NoSync,
		NoStatistics: true,
		// Each commit writes the list of free pages. Without the list, bbolt would search for free pages in its own
		// goroutine when a write fails, and a panic there ends the process.
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
		options.InitialMmapSize = 0 // The process may not get as much address space.
		err = guard(try)
	}
	if err == nil {
		return j, nil
	}
	if j.file != nil {
		_ = j.file.Close() // Already closed, unless bbolt panicked.
	}
	switch {
	case errors.Is(err, bolterrors.ErrTimeout):
		return nil, fmt.Errorf("%w: %w", ErrLocked, err)
	case errors.Is(err, bolterrors.ErrInvalid), errors.Is(err, bolterrors.ErrChecksum), errors.Is(err, bolterrors.ErrVersionMismatch):
		return nil, damaged("%w", err)
	}
	return nil, err
}

// mapBytes is how much address space to reserve. A file that outgrows its mapping is mapped again, and for that bbolt
// makes writers wait for readers.
func mapBytes(limit int64) int {
	// Windows makes the file as large as its mapping.
	if strconv.IntSize < 64 || runtime.GOOS == "windows" {
		return 0
	}
	return int(min(2*limit, 1<<40)) + 1<<30
}

// view runs f in a read transaction.
func (j *journal) view(f func(*bolt.Tx) error) error {
	// bbolt panics while it holds locks if both meta pages are bad. So check them first.
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

// look returns the newer valid meta page, one of the first two pages.
func (j *journal) look() (meta []byte, err error) {
	if j.stuck.Load() {
		return nil, damaged("bbolt panicked before")
	}
	metas := readMetas(j.file)
	if len(metas) == 0 {
		return nil, damaged("neither of the first two pages is good")
	}
	return metas[0], nil
}

// commit returns bbolt's number of the last commit.
func (j *journal) commit() (id int, err error) {
	err = j.view(func(tx *bolt.Tx) error {
		id = tx.ID()
		return nil
	})
	return id, err
}

// update runs f in a write transaction and commits it. The error says what went wrong, and the outcome what that means:
// undone is certain, and a later transaction may succeed.
func (j *journal) update(f func(*bolt.Tx) error) (outcome, error) {
	result, id := undone, 0
	meta, err := j.look()
	if err == nil {
		// bbolt trusts the length in the free list's head and would fill the memory.
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
		if j.sync != nil {
			if err := j.sync(j.db); err != nil {
				// Pages that did not reach the disk may look as if they had. So nothing may build on this commit, in
				// this process or in one that opens the file later.
				return fmt.Errorf("%w: %w", ErrFailed, errors.Join(err, dropMeta(j.file, uint64(id))))
			}
		}
		result = committed
		return nil
	})
	var c *bboltPanic
	if errors.As(err, &c) {
		j.stuck.Store(true)
		return result, err
	}
	if err == nil || result != unsure || errors.Is(err, ErrFailed) {
		return result, err
	}
	// bbolt failed to write the commit. The last write is the meta page that makes the commit visible. If the page is
	// not visible, nothing refers to the written pages. If it is, it may or may not have reached the disk.
	switch seen, looked := j.commit(); {
	case looked != nil:
		return unsure, errors.Join(err, looked)
	case seen == id:
		return unsure, fmt.Errorf("%w: %w", ErrFailed, err)
	}
	return undone, err
}

func (j *journal) close() error {
	if j.stuck.Load() {
		// The mapping stays until the process ends; closing the file releases its lock.
		return j.file.Close()
	}
	return guard(j.db.Close)
}
