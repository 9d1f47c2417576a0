// Package journal stores a writer's writes on disk until they are delivered. Each write becomes a record. The journal
// syncs records in groups, passes them to the writer's buffer in their order, and removes them when the buffer reports
// how they ended: stored, erased, or rejected because of their contents. Rejected ones become dead letters.
//
// The journal knows bytes, sequence numbers and tenants. A Codec turns writes into records and back.
package journal

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/ctxerr"
	"github.com/tidemark-go/tidemark/internal/ingest/buffer"
	"github.com/tidemark-go/tidemark/internal/ingest/spool"
)

const (
	// maxQueued bounds, in bytes, the records that wait for a sync or whose callers were not called yet.
	maxQueued = 16 << 20
	// maxGroup bounds the bytes of one sync.
	maxGroup = 4 << 20
)

// ErrUndelivered is the error of a Close that leaves records in the journal.
var ErrUndelivered = errors.New("tsdb: points are kept in the journal")

// Options are checked by the caller. All are required except MaxBytes.
type Options struct {
	Dir      string
	MaxBytes int64 // 0 is the spool's default
	Codec    Codec
	Erasures Erasures
	// ReadRecords bounds how many records one read takes from the disk.
	ReadRecords int
	// Failed is called for each write that was rejected, once it is a dead letter.
	Failed func(*buffer.Item, bt.Outcome)
	// Broken is called once, if the journal can no longer be read or written. It may call Stats.
	Broken func(error)
}

// Codec turns writes into records and back. Its methods are called by many goroutines at once.
type Codec interface {
	// Load reads the descriptions in the journal, and keeps d to add more. It is called once, before all other methods.
	Load(d *Descriptions) error
	// Encode returns the record of a write.
	Encode(ctx context.Context, e *Entry) ([]byte, error)
	// Decode returns the write of a record. It may retain the record's bytes.
	Decode(record []byte) (*Entry, error)
}

// Erasures decides which writes must leave no trace on the disk.
type Erasures interface {
	// Watch returns a channel that receives when more writes may be erased. Call stop to end that.
	Watch() (changed <-chan struct{}, stop func())
	// Filter returns a function that reports whether a write is erased, as known now. Nil means that no write is.
	Filter() func(*Entry) bool
	// Refused reports whether a write was rejected because it is erased.
	Refused(err error) bool
}

// Journal is an open journal. Create it with Open. It is safe for concurrent use.
type Journal struct {
	opts   Options
	spool  *spool.Spool
	buffer *buffer.Buffer

	ctx  context.Context // of all background work
	stop context.CancelFunc
	done func(*buffer.Item, bt.Outcome) // the method value delivered, made once because each method value allocates

	mu       sync.Mutex
	queue    queue
	enqueued uint64             // number of entries ever put into the queue
	sharing  buffer.Sharing     // of all entries, also of those that wait for room
	syncing  uint64             // lowest number in the group that is being synced and passed on; 0 means none
	full     bool               // the journal has reached its limit
	oversize *Entry             // the entry that finds no room; the others wait behind it
	giveUp   context.CancelFunc // ends the wait for room for oversize
	feed     feed
	shares   shares
	arrivals arrivals
	rejected rejected
	failure  error         // why the spool no longer works
	changed  chan struct{} // closed and replaced when a state changes that a caller may wait for

	closed      bool
	cancelClose context.CancelCauseFunc // ends the context of the running Close
	closeErr    error                   // what Close returns

	erased  atomic.Uint64 // number of writes and dead letters dropped as erased
	callers callers
	workers sync.WaitGroup

	wakeSync, wakeFeed, wakeReject chan struct{}
	wakeScrub                      chan struct{} // receives when something erased was dropped
	freed                          chan struct{} // receives when the buffer has room again
	synced                         chan struct{} // closed when the last group is synced, after Close
	ended                          chan struct{} // closed when Close has done everything
}

// Open opens the journal in a folder, and creates it if it does not exist. Start begins the delivery.
func Open(opts Options) (*Journal, error) {
	dir, err := filepath.Abs(opts.Dir) // the working folder may change
	if err != nil {
		return nil, fmt.Errorf("tsdb: %w", err)
	}
	opts.Dir = dir
	sp, err := spool.Open(opts.Dir, spool.Options{MaxBytes: opts.MaxBytes})
	if err != nil {
		return nil, fmt.Errorf("tsdb: %w", err)
	}
	j := &Journal{
		opts: opts, spool: sp,
		changed:    make(chan struct{}),
		shares:     shares{held: map[string]int64{}, counted: sp.Stats().Next},
		wakeSync:   make(chan struct{}, 1),
		wakeFeed:   make(chan struct{}, 1),
		wakeReject: make(chan struct{}, 1),
		wakeScrub:  make(chan struct{}, 1),
		freed:      make(chan struct{}, 1),
		synced:     make(chan struct{}),
		ended:      make(chan struct{}),
	}
	j.callers.wake, j.done = make(chan struct{}, 1), j.delivered
	if err := opts.Codec.Load(&Descriptions{spool: sp}); err != nil {
		return nil, errors.Join(err, sp.Close())
	}
	if err := j.countDeadLetters(context.Background()); err != nil {
		return nil, errors.Join(fmt.Errorf("tsdb: %w", err), sp.Close())
	}
	j.feed = newFeed(sp.Stats().First)
	j.arrivals.add(j.feed.frontier, time.Now(), j.feed.frontier)
	j.ctx, j.stop = context.WithCancel(context.Background())
	return j, nil
}

// Freed returns the channel for the option Freed of the buffer that is passed to Start.
func (j *Journal) Freed() chan struct{} { return j.freed }

// Start begins the delivery into a buffer.
func (j *Journal) Start(b *buffer.Buffer) {
	j.buffer = b
	j.workers.Go(j.syncLoop)
	j.workers.Go(j.feedLoop)
	j.workers.Go(j.rejectLoop)
	j.workers.Go(j.callLoop)
	j.workers.Go(j.purgeLoop)
	wake(j.wakeFeed)
}

// Stream returns the journal's identity: 32 hexadecimal digits, drawn when the journal was created.
func (j *Journal) Stream() string { return j.spool.Stream() }

// Dir returns the journal's folder.
func (j *Journal) Dir() string { return j.opts.Dir }

// Snapshot is that of the spool.
func (j *Journal) Snapshot(f func(copyTo func(dir string) (spool.Stats, error)) error) error {
	return j.spool.Snapshot(f)
}

// Done removes the record of a write.
func (j *Journal) Done(e *Entry) { j.spool.Done(e.seq) }

// Scrub rewrites the journal's file without any data of records that are done.
func (j *Journal) Scrub(ctx context.Context) error { return closed(j.spool.Scrub(ctx)) }

// Stats describes a journal's contents.
type Stats struct {
	Records, DeadLetters int
	Erased               uint64 // records and dead letters dropped as erased
	Bytes, Limit         int64
	// OldestAge is the greatest possible age of the oldest record; 0 if there is none.
	OldestAge time.Duration
	// Dropped is the number of the last commit before Open, if it was torn or damaged and was dropped; 0 otherwise.
	Dropped uint64
}

// Stats returns what the journal holds.
func (j *Journal) Stats() Stats {
	st := j.spool.Stats()
	s := Stats{Records: st.Records, DeadLetters: st.Dead, Erased: j.erased.Load(), Bytes: st.Bytes, Limit: st.Limit, Dropped: st.Dropped}
	if st.Records > 0 {
		j.mu.Lock()
		defer j.mu.Unlock()
		s.OldestAge = j.arrivals.age(st.First, time.Now())
	}
	return s
}

// wake wakes the goroutine that waits for c.
func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// change wakes all that wait for a change. The journal is locked.
func (j *Journal) change() {
	close(j.changed)
	j.changed = make(chan struct{})
}

// pause waits for d, or until the journal closes.
func (j *Journal) pause(d time.Duration) { _ = ctxerr.Wait(j.ctx, d) }

// fail records that the spool no longer works.
func (j *Journal) fail(err error) {
	err = fmt.Errorf("tsdb: the journal: %w", err)
	j.mu.Lock()
	first := j.failure == nil
	if first {
		j.failure = err
	}
	j.change()
	j.mu.Unlock()
	if first {
		j.opts.Broken(err) // called without the lock, because a logger may call Stats
	}
}
