package spool

import (
	"errors"
	"os"
	"path/filepath"

	bolt "go.etcd.io/bbolt"
)

const (
	// A file from defaultShrink on of which only one part in shrinkPart is used is written anew. bbolt's files never shrink by
	// themselves, and it lists all free pages again in each commit.
	defaultShrink = 64 << 20
	shrinkPart    = 8
	// copyBytes is how much of it one transaction copies.
	copyBytes = 8 << 20
)

// shrinks says whether a file of size bytes is to be written anew for the sake of used bytes.
func (o Options) shrinks(size, used int64) bool { return size >= o.shrink && used < size/shrinkPart }

// copyInto copies the journal without its free pages, and checks that the copy is whole. The copy is not synced.
func (j *journal) copyInto(temp string, o Options, want state) error {
	o.NoSync = true
	to, err := openJournal(temp, o)
	if err != nil {
		return err
	}
	err = guard(func() error { return bolt.Compact(to.db, j.db, copyBytes) })
	if errors.Is(err, ErrDamaged) {
		to.stuck.Store(true)
	}
	for range 2 { // so that both of the pages that name a commit name one with this state
		if err != nil {
			break
		}
		_, err = to.update(func(tx *bolt.Tx) error { return txn{tx, &want}.putState() })
	}
	if err := errors.Join(err, to.close()); err != nil {
		return err
	}
	found, err := inspect(temp)
	if err == nil && found.state != want {
		err = damaged("the copy is another one")
	}
	return err
}

// compact shrinks the journal of a folder that is being opened.
func compact(path string, o Options, want state) (*journal, error) {
	j, err := openJournal(path, o)
	if err != nil {
		return nil, err
	}
	return j.replace(path, o, want, func(f func() error) error { return f() })
}

// shrink does the same for the open journal, on the committer's goroutine.
func (s *Spool) shrink() {
	s.mu.Lock()
	used, idle := s.index.bytes+s.deadBytes+int64(s.metaBytes), s.failed == nil && len(s.queue) == 0
	s.mu.Unlock()
	size := s.journal.size
	if !idle || size < s.shrinkFrom || !s.o.shrinks(size, used) {
		return
	}
	if s.rewrite() != nil {
		s.shrinkFrom = 2 * size
	}
}

// rewrite copies the open journal into a new file. With an error the old one is in place, unless the spool failed.
func (s *Spool) rewrite() error {
	s.mu.Lock()
	want := s.state
	s.mu.Unlock()
	j, err := s.journal.replace(s.path, s.o, want, func(f func() error) error {
		s.handle.Lock()
		defer s.handle.Unlock()
		return f()
	})
	if j == nil {
		err = errors.Join(ErrFailed, err)
		s.mu.Lock()
		s.fail(err)
		s.mu.Unlock()
	}
	return err
}

// replace puts a copy into the journal's place and opens that. While the file changes it runs in alone. A journal comes
// back with an error where the old one is still in place, and open.
func (j *journal) replace(path string, o Options, want state, alone func(func() error) error) (*journal, error) {
	temp := filepath.Join(filepath.Dir(path), tempName)
	if err := j.copyInto(temp, o, want); err != nil {
		return j, errors.Join(err, os.Remove(temp))
	}
	var moved error
	err := alone(func() error {
		if err := j.close(); err != nil {
			return err
		}
		moved = moveInto(temp, path, o)
		next, err := openJournal(path, o)
		if err != nil {
			return errors.Join(moved, err)
		}
		j.db, j.file, j.size = next.db, next.file, 0
		return nil
	})
	if err != nil {
		return nil, err
	}
	return j, moved
}
