package spool

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"
	"time"

	"github.com/tidemark-go/tidemark/internal/invalid"
)

const (
	// blockBytes is how large a block of several records becomes. Larger ones cost more to write: bbolt writes up to four
	// neighbours of a changed entry again.
	blockBytes = 32 << 10
	// tailBytes is the size below which a commit writes the last block again, with its own records behind. bbolt would
	// write the page that holds it anyway, and a journal of small appends does not become one of small blocks.
	tailBytes = 4 << 10
	// batchBytes is how much one commit takes of what waits; one append may be larger.
	batchBytes = 8 << 20
	// markDelay is how long a Done mark may wait for a commit of others.
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

// Options says how a spool works. The zero value is good.
type Options struct {
	// MaxBytes bounds the records and dead letters together, in bytes on disk without the file's own overhead. 0 is 1 GiB;
	// the least is 64 KiB. A block counts until its last record is done. An append beyond it gets ErrFull.
	MaxBytes int64
	// NoSync leaves out all syncing: what was acknowledged then survives the process, but not the machine. For tests.
	NoSync bool
	// Clock gives dead letters their times; nil is time.Now. It is called on the goroutine of the spool.
	Clock func() time.Time

	shrink int64 // see defaultShrink; tests choose less
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
	if o.Clock == nil {
		o.Clock = time.Now
	}
	return o, nil
}

// Spool is an open journal. Its methods may be called by many goroutines at once. It has one goroutine of its own, until
// Close. It is made by Open only.
type Spool struct {
	path   string // of the journal's file
	o      Options
	stream string
	lock   io.Closer

	// handle is held for reading while a transaction reads the file, for writing while compaction replaces the file.
	handle  sync.RWMutex
	journal *journal
	// shrinkFrom is the size of the file from which compaction is tried again. It belongs to the committer.
	shrinkFrom int64
	// stale is about how many bytes of the file are of records that are done. It belongs to the committer.
	stale int64

	mu        sync.Mutex
	index     index
	state     state // as it is on disk
	deadBytes int64
	metas     map[string][]byte
	metaBytes int
	queue     []*request
	asked     int64         // bytes of the appends in queue and in a commit under way
	changed   chan struct{} // closed and replaced when a commit ends or room is made
	writing   bool          // a commit is under way
	commits   uint64
	failed    error
	closing   bool

	wake  chan struct{}
	ended chan struct{}
}

// Open opens the journal in a folder, which it makes if there is none, with mode 0700. It reads everything that is to be
// delivered once, to check it. Errors are ErrLocked, ErrDamaged, ErrVersion, an invalid option (ErrInvalid) and those of
// the file system.
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

// Stream returns the journal's identity: 128 random bits in hexadecimal, drawn when the journal was made. With a
// record's sequence number it names the record for ever.
func (s *Spool) Stream() string { return s.stream }

// Stats is a look at a spool at one moment.
type Stats struct {
	// Records counts those that are not done.
	Records int
	// Bytes is what counts towards Limit: blocks with a record that is not done, and dead letters.
	Bytes int64
	// First is the smallest sequence number that is not done; Next where there is none.
	First uint64
	// Next is the sequence number of the next record.
	Next uint64
	// Dead counts dead letters, which take DeadBytes of Bytes.
	Dead      int
	DeadBytes int64
	// Limit is Options.MaxBytes.
	Limit int64
}

// Stats costs a look at memory.
func (s *Spool) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := Stats{
		Records: s.index.left, Bytes: s.index.bytes + s.deadBytes, First: s.state.next, Next: s.state.next,
		Dead: int(s.state.tallies[dead].n), DeadBytes: s.deadBytes, Limit: s.o.MaxBytes,
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

// Used returns how many bytes count towards the limit, those of appends under way included, and the limit.
func (s *Spool) Used() (used, limit int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.index.bytes + s.deadBytes + s.asked, s.o.MaxBytes
}

// Meta returns a value that SetMeta stored. It is the caller's.
func (s *Spool) Meta(name string) ([]byte, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	value, ok := s.metas[name]
	return append([]byte{}, value...), ok
}

// Metas returns all values that SetMeta stored. They are the caller's.
func (s *Spool) Metas() map[string][]byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make(map[string][]byte, len(s.metas))
	for name, value := range s.metas {
		out[name] = append([]byte{}, value...)
	}
	return out
}

// SetMeta stores a small value under a name, durably; nil removes it. Names have 1 to 256 bytes, values up to 1 MiB, all
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

// Close commits what waits, puts Done marks on disk and ends the spool's goroutine. Every later call gets ErrClosed; a
// second Close gets nil. Close waits for the disk, however long that takes; its error says what could not be written.
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
	if closed := s.journal.close(); err == nil && closed != nil {
		err = closed
	}
	if err != nil {
		err = fmt.Errorf("closing the journal: %w", err)
	}
	return errors.Join(err, s.lock.Close())
}

// refusal is why the spool does nothing any more. The caller holds mu.
func (s *Spool) refusal() error {
	if s.failed != nil {
		return s.failed
	}
	if s.closing {
		return ErrClosed
	}
	return nil
}

// signal wakes all that wait for a commit or for room. The caller holds mu.
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

// adopt takes over what a look at the file has found.
func (s *Spool) adopt(found *contents) {
	s.index, s.state, s.deadBytes = found.index, found.state, found.deadBytes
	s.metas, s.metaBytes = found.metas, found.metaBytes
	s.stream = hex.EncodeToString(found.state.stream[:])
}
