package spool

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/private"
)

const (
	// blockBytes is the largest size of a block of several records. Larger blocks cost more to write: bbolt rewrites up
	// to four neighbours of a changed entry.
	blockBytes = 32 << 10
	// If the last block is smaller than tailBytes, a commit appends its records to that block. bbolt would rewrite the
	// block's page anyway, and a journal of small appends does not become a journal of small blocks.
	tailBytes = 4 << 10
	// batchBytes is how many waiting bytes one commit takes; one append may be larger.
	batchBytes = 8 << 20
	// markDelay is how long a Done mark may wait for another call's commit.
	markDelay = 250 * time.Millisecond

	maxRecord   = 32 << 20
	maxReason   = 64 << 10
	maxAttempts = 1<<31 - 1
	maxName     = 256
	maxMeta     = 1 << 20
	maxMetas    = 64 << 20

	defaultBytes = 1 << 30
	minBytes     = 64 << 10
)

// Options configures a spool. The zero value is valid.
type Options struct {
	// MaxBytes bounds the records and dead letters together, in bytes on disk without the file's own overhead. 0 means
	// 1 GiB; the minimum is 64 KiB. A block counts until its last record is done. An append beyond it gets ErrFull.
	MaxBytes int64
	// NoSync disables all syncing: acknowledged records then survive the process, but not the machine. For tests.
	NoSync bool
	// Clock supplies the times of dead letters; nil means time.Now. It is called on the spool's goroutine.
	Clock func() time.Time

	shrink     int64                                 // see defaultShrink; tests set less
	syncFolder func(string) error                    // tests make it fail
	syncFile   func(interface{ Sync() error }) error // the same
}

func (o Options) resolve() (Options, error) {
	if o.MaxBytes == 0 {
		o.MaxBytes = defaultBytes
	}
	if o.MaxBytes < minBytes {
		return o, invalid.New(ErrInvalid, "MaxBytes", strconv.FormatInt(o.MaxBytes, 10), "0 or at least 65536")
	}
	if o.shrink == 0 {
		o.shrink = defaultShrink
	}
	if o.syncFolder == nil {
		o.syncFolder = private.SyncFolder
	}
	if o.syncFile == nil {
		o.syncFile = func(f interface{ Sync() error }) error { return f.Sync() }
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
	return o, nil
}

// Spool is an open journal. Create it with Open. Its methods are safe for concurrent use. It runs one goroutine until
// Close.
type Spool struct {
	path   string // of the journal's file
	o      Options
	stream string
	lock   *os.File

	// handle is locked for reading while a transaction reads the file, and for writing while the file is replaced.
	handle  sync.RWMutex
	journal *journal
	// shrinkFrom is the file size from which shrink tries again. Only the committer uses it.
	shrinkFrom int64
	// stale is about how many bytes of the file belong to done records. Only the committer uses it.
	stale int64
	// skipped is the commit that does not hold the next numbers, because Open raised them; 0 if it did not.
	skipped uint64
	// dropped is the torn commit that Open dropped; 0 if there was none.
	dropped uint64

	mu        sync.Mutex
	index     index
	state     state // as on disk
	deadBytes int64
	metas     map[string][]byte
	metaBytes int
	queue     []*request
	asked     int64         // bytes of appends in the queue and in the current commit
	changed   chan struct{} // closed and replaced when a commit ends or room becomes free
	writing   bool          // a commit is running
	commits   uint64
	failed    error
	closing   bool

	wake  chan struct{}
	ended chan struct{}
}

// Open opens the journal in a folder. If the folder does not exist, Open creates it with mode 0700. It reads all
// records that are to be delivered once, to check them. Errors are ErrLocked, ErrDamaged, ErrVersion, an invalid option
// (ErrInvalid) and those of the file system.
func Open(dir string, o Options) (*Spool, error) {
	o, err := o.resolve()
	if err != nil {
		return nil, err
	}
	s := &Spool{o: o, changed: make(chan struct{}), wake: make(chan struct{}, 1), ended: make(chan struct{})}
	if err := s.open(dir); err != nil {
		return nil, fmt.Errorf("opening the journal in %s: %w", dir, err)
	}
	s.reserve()
	go s.run()
	return s, nil
}

// Stream returns the journal's identity: 128 random bits in hexadecimal, drawn when the journal was created. Stream and
// sequence number together identify a record forever.
func (s *Spool) Stream() string { return s.stream }

// Stats describes a spool at one moment.
type Stats struct {
	// Records is the number of records that are not done.
	Records int
	// Bytes counts towards Limit: blocks with a record that is not done, and dead letters.
	Bytes int64
	// First is the smallest sequence number that is not done, or Next if there is none.
	First uint64
	// Next is the sequence number of the next record.
	Next uint64
	// Dead is the number of dead letters. Their size, DeadBytes, is part of Bytes.
	Dead      int
	DeadBytes int64
	// Limit is Options.MaxBytes.
	Limit int64
	// Dropped is the number of the last commit before Open, if it was torn or damaged and Open dropped it. Otherwise it
	// is 0.
	Dropped uint64
}

// Stats reads memory only.
func (s *Spool) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := Stats{
		Records: s.index.left, Bytes: s.index.bytes + s.deadBytes, First: s.state.next, Next: s.state.next,
		Dead: int(s.state.tallies[dead].n), DeadBytes: s.deadBytes, Limit: s.o.MaxBytes, Dropped: s.dropped,
	}
	for _, b := range s.index.list {
		if b.left > 0 {
			for i := range b.n {
				if !b.done.has(i) {
					st.First = b.seq(i)
					return st
				}
			}
		}
	}
	return st
}

// Used returns how many bytes count towards the limit, including running appends, and the limit.
func (s *Spool) Used() (used, limit int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.index.bytes + s.deadBytes + s.asked, s.o.MaxBytes
}

// Metas returns all values that SetMeta stored. The caller owns them.
func (s *Spool) Metas() map[string][]byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make(map[string][]byte, len(s.metas))
	for name, value := range s.metas {
		out[name] = append([]byte{}, value...)
	}
	return out
}

// SetMeta stores a small value durably under a name; nil removes it. Names have 1 to 256 bytes, values up to 1 MiB, all
// together 64 MiB, which MaxBytes does not include. Errors are those of Append.
func (s *Spool) SetMeta(ctx context.Context, name string, value []byte) error {
	if len(name) == 0 || len(name) > maxName {
		return invalid.New(ErrInvalid, "name", invalid.Quote(name), "1 to 256 bytes")
	}
	if len(value) > maxMeta {
		return invalid.New(ErrInvalid, "value", strconv.Itoa(len(value))+" bytes", "at most 1 MiB")
	}
	s.mu.Lock()
	size := s.metaBytes + len(name) + len(value)
	s.mu.Unlock()
	if value != nil && size > maxMetas {
		return invalid.New(ErrInvalid, "all values", strconv.Itoa(size)+" bytes", "at most 64 MiB")
	}
	_, err := s.do(ctx, &request{meta: &meta{name, append([]byte{}, value...), value == nil}})
	return err
}

// Close commits waiting requests, writes Done marks to disk and ends the spool's goroutine. Every later call gets
// ErrClosed; a second Close gets nil. Close waits for the disk without a limit; its error says what could not be
// written.
func (s *Spool) Close() error {
	s.mu.Lock()
	if s.closing {
		s.mu.Unlock()
		<-s.ended
		return nil
	}
	s.closing = true
	s.signal()
	s.mu.Unlock()
	s.kick()
	<-s.ended
	s.handle.Lock()
	defer s.handle.Unlock()
	s.mu.Lock()
	err := s.failed
	s.mu.Unlock()
	commit, unknown := s.journal.commit()
	err = cmp.Or(err, s.journal.close())
	if err != nil {
		err = fmt.Errorf("closing the journal: %w", err)
	}
	// Without the note the next Open raises the numbers again, and the next Close rewrites the file.
	if err == nil && unknown == nil && uint64(commit) != s.skipped {
		_ = noteClosed(s.lock, uint64(commit), s.stale == 0)
	}
	return errors.Join(err, unlockFolder(s.lock))
}

// refusal returns why the spool refuses calls, or nil. The caller holds mu.
func (s *Spool) refusal() error {
	if s.failed != nil {
		return s.failed
	}
	if s.closing {
		return ErrClosed
	}
	return nil
}

// signal wakes all calls that wait for a commit or for room. The caller holds mu.
func (s *Spool) signal() {
	close(s.changed)
	s.changed = make(chan struct{})
}

func (s *Spool) kick() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// adopt takes over the contents of the file.
func (s *Spool) adopt(found *contents) {
	s.index, s.state, s.deadBytes = found.index, found.state, found.deadBytes
	s.metas, s.metaBytes = found.metas, found.metaBytes
	s.stream = hex.EncodeToString(found.state.stream[:])
}
