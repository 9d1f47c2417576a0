package spool

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"

	bolt "go.etcd.io/bbolt"

	"github.com/tidemark-go/tidemark/internal/private"
)

const (
	fileName    = "journal.db"
	tempName    = "journal.tmp" // a copy that will become the journal; Open deletes a leftover
	reserveName = "reserve"     // space that is released when a full disk keeps delivered records from being removed
	lockName    = "lock"        // locked while the folder is open; holds the journal's stream once it exists
)

// reserveBytes suffices for a commit that only removes, unless records are very large.
const reserveBytes = 1 << 20

// open does all of Open except starting the goroutine.
func (s *Spool) open(dir string) error {
	if err := private.Folder(dir); err != nil {
		return err
	}
	lock, err := lockFolder(filepath.Join(dir, lockName))
	if err != nil {
		return err
	}
	s.path = filepath.Join(dir, fileName)
	if err := s.load(lock); err != nil {
		return errors.Join(err, unlockFolder(lock))
	}
	s.lock = lock
	return nil
}

// load opens the journal or creates one.
func (s *Spool) load(lock *os.File) error {
	temp := filepath.Join(filepath.Dir(s.path), tempName)
	if err := os.Remove(temp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	marker, n, err := readLock(lock)
	if err != nil {
		return err
	}
	_, err = os.Stat(s.path)
	created := errors.Is(err, fs.ErrNotExist)
	if created {
		if isStream(marker) {
			return damaged("%s is missing", fileName)
		}
		err = create(s.path, temp, s.o)
	}
	if err != nil {
		return err
	}
	found, err := recoverFile(s.path, n.closed)
	if err != nil {
		return fmt.Errorf("%s: %w", fileName, err)
	}
	s.adopt(found)
	s.dropped = found.dropped
	if !n.scrubbed {
		s.stale = found.size - found.used
	}
	if want := s.stream + "\n"; string(marker) != want {
		if isStream(marker) {
			return damaged("%s belongs to a different journal than %s", lockName, fileName)
		}
		if err := writeMarker(lock, want, s.o); err != nil {
			return err
		}
	}
	if n.closed == 0 && !created {
		if err := s.skipNumbers(); err != nil {
			return err
		}
	}
	return s.openFound(lock, n, s.o.shrinks(found.size, found.used))
}

// openFound opens a file that was checked. Until then the note stays, so that an Open that fails changes nothing.
func (s *Spool) openFound(lock *os.File, n lockNote, shrinks bool) (err error) {
	if !n.unsynced {
		// The process may have been killed before the sync of its last commit. The next commit overwrites pages of the
		// commit before, so the last one must be on disk by then.
		if err := syncFound(s.path, s.o); err != nil {
			// A later sync would succeed and prove nothing: the system takes the pages for written.
			return errors.Join(err, setNote(lock, n.text+unsynced, s.o)) // The rest of the note still holds.
		}
		if err := setNote(lock, "", s.o); err != nil {
			return err
		}
		if !shrinks {
			s.journal, err = openJournal(s.path, s.o)
			return err
		}
		if err = s.compact(); s.journal != nil {
			return nil // On an error the journal is the old file, which works as well.
		}
		return err
	}
	// The copy has other numbers of commits, so a note of the last one must go before.
	if err := setNote(lock, unsynced, s.o); err != nil {
		return err
	}
	if err = s.compact(); err == nil {
		err = setNote(lock, "", s.o)
	}
	if err != nil && s.journal != nil {
		err = errors.Join(err, s.journal.close())
	}
	return err
}

// numberGap is more than the records, or the dead letters, of a commit.
const numberGap = 1 << 32

// skipNumbers raises the numbers of the next record and of the next dead letter, because a commit may be lost that was
// acknowledged, and whose records were delivered and letters listed. Its numbers must not identify others. The next
// commit stores the raised numbers; Close makes one if there was none.
func (s *Spool) skipNumbers() error {
	if max(s.state.next, s.state.nextDead) > math.MaxUint64-numberGap {
		return damaged("the sequence numbers are used up")
	}
	s.state.next += numberGap
	s.state.nextDead += numberGap
	s.skipped = s.state.txid
	return nil
}

// reserve creates the reserve file. If the disk is full, there is none.
func (s *Spool) reserve() {
	name := filepath.Join(filepath.Dir(s.path), reserveName)
	if info, err := os.Stat(name); err == nil && info.Size() == reserveBytes {
		return
	}
	err := os.WriteFile(name, make([]byte, reserveBytes), 0o600)
	if err == nil && !s.o.NoSync {
		var f *os.File
		if f, err = os.OpenFile(name, os.O_RDWR, 0); err == nil {
			err = errors.Join(f.Sync(), f.Close())
		}
	}
	if err != nil {
		_ = os.Remove(name)
	}
}

// release deletes the reserve file.
func (s *Spool) release() { _ = os.Remove(filepath.Join(filepath.Dir(s.path), reserveName)) }

func isStream(marker []byte) bool {
	if len(marker) != markerBytes || marker[32] != '\n' {
		return false
	}
	_, err := hex.DecodeString(string(marker[:32]))
	return err == nil
}

// markerBytes is the length of the stream and its newline in the lock file. Notes may follow; older programs ignore
// those that they do not know.
const markerBytes = 33

// closedAt and scrubbedAt name the last commit of a journal that was closed; scrubbedAt says that its file holds no
// record that is done. unsynced says that syncing the file failed.
const (
	closedAt   = "closed at %d\n"
	scrubbedAt = "scrubbed at %d\n"
	unsynced   = "unsynced\n"
)

// lockNote is what follows the stream in the lock file.
type lockNote struct {
	text     string
	closed   uint64 // the last commit of a journal that was closed, or 0
	scrubbed bool
	unsynced bool
}

// readLock reads the stream and the note. It changes nothing: an Open that fails must leave the note to the next one.
func readLock(lock *os.File) (marker []byte, n lockNote, err error) {
	text := make([]byte, markerBytes+80)
	size, err := lock.ReadAt(text, 0)
	if err != nil && err != io.EOF {
		return nil, n, err
	}
	text = text[:size]
	if size <= markerBytes {
		return text, n, nil
	}
	n.text = string(text[markerBytes:])
	n.unsynced = strings.Contains(n.text, unsynced)
	line, _, whole := strings.Cut(n.text, "\n")
	if !whole {
		return text[:markerBytes], n, nil // A cut number is another number.
	}
	line += "\n"
	if _, err := fmt.Sscanf(line, scrubbedAt, &n.closed); err == nil {
		n.scrubbed = true
	} else if _, err := fmt.Sscanf(line, closedAt, &n.closed); err != nil {
		n.closed = 0
	}
	return text[:markerBytes], n, nil
}

// setNote replaces the note. After a crash in between, the file begins with the new one.
func setNote(lock *os.File, text string, o Options) error {
	if _, err := lock.WriteAt([]byte(text), markerBytes); err != nil {
		return err
	}
	if err := lock.Truncate(markerBytes + int64(len(text))); err != nil || o.NoSync {
		return err
	}
	return lock.Sync()
}

// noteClosed writes the note. If it is lost, the next Open raises the numbers, the next Close
// rewrites the file, and damage to the last commit looks torn.
func noteClosed(lock *os.File, commit uint64, scrubbed bool) error {
	text := closedAt
	if scrubbed {
		text = scrubbedAt
	}
	_, err := lock.WriteAt(fmt.Appendf(nil, text, commit), markerBytes)
	return err
}

// writeMarker writes to the lock file that a journal exists, so that its loss is noticed.
func writeMarker(lock *os.File, text string, o Options) error {
	if err := lock.Truncate(0); err != nil {
		return err
	}
	if _, err := lock.WriteAt([]byte(text), 0); err != nil {
		return err
	}
	if o.NoSync {
		return nil
	}
	return lock.Sync()
}

// create makes an empty journal under another name first, so that a crash leaves either none or a complete one.
func create(path, temp string, o Options) error {
	j, err := openJournal(temp, o)
	if err != nil {
		return err
	}
	_, err = j.update(func(tx *bolt.Tx) error {
		for _, name := range bucketNames {
			if _, err := tx.CreateBucket([]byte(name)); err != nil {
				return err
			}
		}
		var st state
		rand.Read(st.stream[:])
		return txn{tx, &st}.putState()
	})
	if err := errors.Join(err, j.close()); err != nil {
		return err
	}
	return moveInto(temp, path, o)
}

// errFolder means that after a crash of the machine the journal's name may refer to the old file or to the new one.
var errFolder = errors.New("syncing the journal's folder")

// moveInto syncs a complete file and renames it to the journal's name. With an error other than errFolder, the old file
// is in place.
func moveInto(temp, path string, o Options) error {
	if !o.NoSync {
		file, err := os.OpenFile(temp, os.O_RDWR, 0)
		if err != nil {
			return err
		}
		if err := errors.Join(file.Sync(), file.Close()); err != nil {
			return err
		}
	}
	if err := os.Rename(temp, path); err != nil {
		return err
	}
	if err := o.syncFolder(filepath.Dir(path)); err != nil {
		return fmt.Errorf("%w: %w", errFolder, err)
	}
	return nil
}

// contents is the result of reading the whole file.
type contents struct {
	index     index
	state     state
	deadBytes int64
	metas     map[string][]byte
	metaBytes int
	size      int64 // of the file, up to the end of its last page
	used      int64
	dropped   uint64 // the commit after this one, which was torn; 0 if there was none
}

// inspect reads all entries of a commit and checks them.
func inspect(file *os.File, meta []byte) (*contents, error) {
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	c, seen, states := &contents{metas: map[string][]byte{}}, [counted]tally{}, 0
	w, err := walk(file, info.Size(), meta, func(b bucket, key, sealed []byte) error {
		value, err := unseal(b, key, sealed)
		if err != nil {
			return err
		}
		if int(b) < counted {
			seen[b].add(sumOf(sealed))
		} else {
			states++
		}
		return c.enter(b, key, value)
	})
	if err != nil {
		return nil, err
	}
	if states != 1 {
		return nil, damaged("there are %d states", states)
	}
	for b, t := range seen {
		if t != c.state.tallies[b] {
			return nil, damaged("the table %s has %d entries and should have %d, or has wrong ones", bucketNames[b], t.n, c.state.tallies[b].n)
		}
	}
	if c.state.txid != w.txid {
		return nil, damaged("its last commit is number %d, but its state was written by number %d", w.txid, c.state.txid)
	}
	if list := c.index.list; len(list) > 0 && list[len(list)-1].end() > c.state.next {
		return nil, damaged("sequence %d is beyond the last one", list[len(list)-1].first)
	}
	c.size, c.used = int64(w.pages)*pageBytes, int64(w.count)*pageBytes
	return c, nil
}

// enter adds one entry to the contents.
func (c *contents) enter(b bucket, key, value []byte) error {
	if b == states {
		if string(key) != string(stateKey) {
			return damaged("an unknown state %.40q", key)
		}
		return c.state.decode(value)
	}
	if b == metas {
		c.metas[string(key)] = append([]byte{}, value...)
		c.metaBytes += len(key) + len(value)
		return nil
	}
	if len(key) != 8 {
		return damaged("a key of %d bytes in %s", len(key), bucketNames[b])
	}
	number, size := binary.BigEndian.Uint64(key), len(key)+len(value)+sumBytes
	switch b {
	case blocks:
		return c.enterBlock(number, value, size)
	case dead:
		c.deadBytes += int64(size)
		_, err := decodeDead(number, value)
		return err
	}
	return c.enterMarks(number, value)
}

func (c *contents) enterBlock(first uint64, value []byte, size int) error {
	frames, err := parseBlock(nil, value)
	if err != nil {
		return fmt.Errorf("the block of sequence %d: %w", first, err)
	}
	n := len(frames)
	b := &block{first: first, n: n, left: n, size: size}
	if int(frames[n-1].offset) != n-1 {
		b.offsets = make([]uint32, n)
		for i, f := range frames {
			b.offsets[i] = f.offset
		}
	}
	if list := c.index.list; b.end() <= first || len(list) > 0 && list[len(list)-1].end() > first {
		return damaged("sequence %d exists twice", first)
	}
	c.index.add(b)
	return nil
}

func (c *contents) enterMarks(first uint64, value []byte) error {
	at := c.index.at(first)
	if at == len(c.index.list) || c.index.list[at].first != first || len(value) != len(newBitmap(c.index.list[at].n)) {
		return damaged("marks for sequence %d match no block", first)
	}
	b := c.index.list[at]
	b.marked = true
	for i := range b.n {
		if bitmap(value).has(i) {
			c.index.mark(b, i)
		}
	}
	// The disk has these marks already. Only an empty block stays dirty: it is still to be removed.
	if b.dirty && b.left > 0 {
		c.index.dirty, b.dirty = c.index.dirty[:len(c.index.dirty)-1], false
	}
	return nil
}
