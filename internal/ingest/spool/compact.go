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
	s.journal, err = s.replace(j, s.state)
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
	j, err := s.replace(s.journal, want)
	if j == nil {
		err = errors.Join(ErrFailed, err)
		s.end(err)
	}
	return err
}

// replace puts a copy into the journal's place and opens it, while nobody reads the file. If it returns both a journal
// and an error, the old file is still in place, and open.
func (s *Spool) replace(j *journal, want state) (*journal, error) {
	temp := filepath.Join(filepath.Dir(s.path), tempName)
	err := j.view(func(tx *bolt.Tx) error {
		_, err := copyInto(temp, tx, s.o, want)
		return err
	})
	if err != nil {
		return j, errors.Join(err, os.Remove(temp))
	}
	s.handle.Lock()
	defer s.handle.Unlock()
	if err := j.close(); err != nil {
		return nil, err
	}
	moved := moveInto(temp, s.path, s.o)
	if errors.Is(moved, errFolder) {
		return nil, moved
	}
	next, err := openJournal(s.path, s.o)
	if err != nil {
		return nil, errors.Join(moved, err)
	}
	j.db, j.file, j.size = next.db, next.file, 0
	if moved == nil {
		s.skipped = 0 // The copy holds the raised number, and numbers its commits anew.
	}
	return j, moved
}
