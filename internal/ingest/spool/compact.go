package spool

import (
	"errors"
	"os"
	"path/filepath"

	bolt "go.etcd.io/bbolt"
)

const (
	// A file of defaultShrink bytes or more is rewritten when less than one part in shrinkPart is used. bbolt's files
	// never shrink by themselves, and each commit writes the list of all free pages.
	defaultShrink = 64 << 20
	shrinkPart    = 8
	// copyBytes is how many bytes one transaction copies.
	copyBytes = 8 << 20
)

// shrinks reports whether a file of size bytes with used bytes in use is to be rewritten.
func (o Options) shrinks(size, used int64) bool { return size >= o.shrink && used < size/shrinkPart }

// copyInto copies a journal without its free pages and checks that the copy is complete. It does not sync the copy.
func copyInto(temp string, from *bolt.Tx, o Options, want state) (found *contents, err error) {
	o.NoSync = true
	to, err := openJournal(temp, o)
	if err != nil {
		return nil, err
	}
	err = guard(func() error { return copyTables(to.db, from) })
	if errors.Is(err, ErrDamaged) {
		to.stuck.Store(true)
	}
	for range 2 { // twice, so that both meta pages name a commit with this state
		if err != nil {
			break
		}
		_, err = to.update(func(tx *bolt.Tx) error { return txn{tx, &want}.putState() })
	}
	if err := errors.Join(err, to.close()); err != nil {
		return nil, err
	}
	found, err = recoverFile(temp, want.txid)
	if err == nil && found.state != want {
		err = damaged("the copy differs from the journal")
	}
	return found, err
}

// compact opens the journal as a copy of its file. If the copy fails, the journal may be the old file.
func (s *Spool) compact() error {
	j, err := openJournal(s.path, s.o)
	if err != nil {
		return err
	}
	s.journal, err = j.replace(s.path, s.o, s.state, func(f func() error) error { return f() })
	if err == nil {
		s.skipped = 0 // The copy holds the raised number, and numbers its commits anew.
	}
	return err
}

// shrink shrinks the open journal, on the committer's goroutine.
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

// rewrite copies the open journal into a new file. On an error the old file stays in place, unless the spool failed.
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
		s.end(err)
	}
	if err == nil {
		s.skipped = 0
	}
	return err
}

// replace puts a copy into the journal's place and opens it. It changes the file within alone. If it returns both a
// journal and an error, the old file is still in place, and open.
func (j *journal) replace(path string, o Options, want state, alone func(func() error) error) (*journal, error) {
	temp := filepath.Join(filepath.Dir(path), tempName)
	err := j.view(func(tx *bolt.Tx) error {
		_, err := copyInto(temp, tx, o, want)
		return err
	})
	if err != nil {
		return j, errors.Join(err, os.Remove(temp))
	}
	var moved error
	err = alone(func() error {
		if err := j.close(); err != nil {
			return err
		}
		if moved = moveInto(temp, path, o); errors.Is(moved, errFolder) {
			return moved
		}
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
