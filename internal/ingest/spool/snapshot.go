package spool

import (
	"errors"
	"os"
	"path/filepath"

	bolt "go.etcd.io/bbolt"

	"github.com/tidemark-go/tidemark/internal/private"
)

// Snapshot calls f with a function that copies the journal, as it is when Snapshot is called, to a new folder. So f can
// copy other things that must not be older. Appends go on meanwhile; Scrub and Close wait for f.
//
// The copy has the stream of the journal. Its next sequence number is greater than those of the journal by 2^32, as
// after a crash: the journal, which goes on, gives the numbers between to other records. Records that are done are not
// in the copy, unless that was not on disk yet.
//
// Errors are those of f, ErrClosed, ErrDamaged and the error that ended the spool.
func (s *Spool) Snapshot(f func(copyTo func(dir string) (Stats, error)) error) error {
	var failed error
	err := s.view(func(tx *bolt.Tx) error {
		failed = f(func(dir string) (Stats, error) { return s.copyTo(dir, tx) })
		return nil
	})
	return errors.Join(failed, err)
}

// copyTo makes a folder with a copy of the journal as a transaction sees it. It returns how many records and dead
// letters the copy has.
func (s *Spool) copyTo(dir string, tx *bolt.Tx) (has Stats, err error) {
	var want state
	value, err := load(tx, states, stateKey)
	if err == nil {
		err = want.decode(value)
	}
	if err == nil {
		err = private.Folder(dir)
	}
	if err != nil {
		return has, err
	}
	temp := filepath.Join(dir, tempName)
	found, err := copyInto(temp, tx, s.o, want)
	if err != nil {
		return has, err
	}
	has = Stats{Records: found.index.left, Dead: int(found.state.tallies[dead].n)}
	if err := moveInto(temp, filepath.Join(dir, fileName), s.o); err != nil {
		return has, err
	}
	lock, err := os.OpenFile(filepath.Join(dir, lockName), os.O_RDWR|os.O_CREATE|os.O_EXCL, private.FileMode)
	if err != nil {
		return has, err
	}
	return has, errors.Join(writeMarker(lock, s.stream+"\n", s.o), lock.Close())
}

// copyTables copies all entries to an empty file.
func copyTables(to *bolt.DB, from *bolt.Tx) error {
	tx, err := to.Begin(true)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // after a commit it does nothing
	size := 0
	for b, name := range bucketNames {
		table, err := (txn{tx: from}).bucket(bucket(b))
		if err != nil {
			return err
		}
		if _, err := tx.CreateBucket([]byte(name)); err != nil {
			return err
		}
		err = table.ForEach(func(key, sealed []byte) error {
			if size += len(key) + len(sealed); size > copyBytes {
				if err := tx.Commit(); err != nil {
					return err
				}
				if tx, err = to.Begin(true); err != nil {
					return err
				}
				size = 0
			}
			into := tx.Bucket([]byte(name))
			into.FillPercent = 1
			return into.Put(key, sealed)
		})
		if err != nil {
			return err
		}
	}
	return tx.Commit()
}
