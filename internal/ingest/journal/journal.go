// Package journal stores a writer's writes on disk until they are delivered. A write becomes a record. Records are synced
// in groups, go on to the writer's buffer in the order of the journal, and leave the journal when the buffer reports how
// they ended: stored, erased, or rejected for what they hold, which makes them dead letters.
//
// The journal knows bytes, sequence numbers and tenants. A Codec turns writes into records and back.
package journal

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/ingest/buffer"
	"github.com/tidemark-go/tidemark/internal/ingest/spool"
)

const (
	// maxQueued bounds the records that wait for a sync, or whose callers are not told yet, in bytes.
	maxQueued = 16 << 20
	// maxGroup is how many bytes of them one sync takes.
	maxGroup = 4 << 20
)

// ErrUndelivered is the error of a Close that leaves records behind.
var ErrUndelivered = errors.New("tsdb: points are kept in the journal")

// Options are all required, and checked by the caller.
type Options struct {
	Dir      string
	MaxBytes int64 // 0 is the spool's default
	Codec    Codec
	Erasures Erasures
	// ReadRecords is how many records are read from the disk at once, at most.
	ReadRecords int
	// Failed is called for each write that was rejected, once it is a dead letter.
	Failed func(*buffer.Item, bt.Outcome)
	// Broken is called once, if the journal can no longer be read or written. It may call Stats.
	Broken func(error)
}

// Codec turns writes into records and back. Its methods are called by many goroutines at once.
type Codec interface {
	// Load reads the descriptions that the journal holds, and keeps d for more of them. It is called once, before all others.
	Load(d *Descriptions) error
	// Encode returns the record of a write.
	Encode(ctx context.Context, e *Entry) ([]byte, error)
	// Decode returns the write of a record. It may keep the record.
	Decode(record []byte) (*Entry, error)
}

// Erasures tells a journal which writes must leave no trace on the disk.
type Erasures interface {
	// Watch returns a channel that receives when more writes may be erased, until stop is called.
	Watch() (changed <-chan struct{}, stop func())
	// Filter returns a function that reports whether a write is erased, by what is known now. Nil is for no write.
	Filter() func(*Entry) bool
	// Refused reports whether a write was rejected because it is erased.
	Refused(err error) bool
}

// Journal is an open journal. Open makes one. It is safe for concurrent use.
type Journal struct {
	opts   Options
	spool  *spool.Spool
	buffer *buffer.Buffer

	ctx  context.Context // of all work in the background
	stop context.CancelFunc
	done func(*buffer.Item, bt.Outcome) // delivered, made once: each method value would be an allocation

	mu       sync.Mutex
	queue    []*Entry           // entries that wait for a sync
	queued   int                // bytes of entries in the queue, or whose callers are not told yet
	enqueued uint64             // how many entries came into the queue
	syncing  uint64             // the number of the first entry of the group that is being synced and passed on; 0 for none
	full     bool               // the journal's limit is reached
	oversize *Entry             // the entry for which there is no room, while the others wait behind it
	giveUp   context.CancelFunc // ends the wait for its room
	feed     feed
	shares   shares
	arrivals arrivals
	rejected rejected
	failure  error         // why the spool no longer works
	changed  chan struct{} // closed and replaced when something changes that a caller may wait for

	closed      bool
	cancelClose context.CancelCauseFunc // ends the context of the Close that is under way
	closeErr    error                   // what Close returns

	erased  atomic.Uint64 // writes and dead letters that were dropped as erased
	callers callers
	workers sync.WaitGroup

	wakeSync, wakeFeed, wakeReject chan struct{}
	wakeScrub                      chan struct{} // receives when something erased was dropped
	freed                          chan struct{} // receives when the buffer has room again
	synced                         chan struct{} // closed when the last group is synced, after Close
	ended                          chan struct{} // closed when Close has done everything
}

// Open opens the journal in a folder, and makes one where there is none. Start begins the delivery.
func Open(opts Options) (*Journal, error) {
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

// Freed returns the channel for buffer.Options.Freed, of the buffer that Start is given.
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

// Stream returns the journal's identity: 32 hexadecimal digits, drawn when its folder was made.
func (j *Journal) Stream() string { return j.spool.Stream() }

// Done removes the record of a write.
func (j *Journal) Done(e *Entry) { j.spool.Done(e.seq) }

// Scrub writes the journal's file anew, without anything of records that are done.
func (j *Journal) Scrub(ctx context.Context) error { return j.spool.Scrub(ctx) }

// Stats are what a journal holds.
type Stats struct {
	Records, DeadLetters int
	Erased               uint64 // records and dead letters that were dropped as erased
	Bytes, Limit         int64
	// OldestAge is how old the oldest record is, at most; 0 where there is none.
	OldestAge time.Duration
}

// Stats returns what the journal holds.
func (j *Journal) Stats() Stats {
	st := j.spool.Stats()
	s := Stats{Records: st.Records, DeadLetters: st.Dead, Erased: j.erased.Load(), Bytes: st.Bytes, Limit: st.Limit}
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

// change wakes everybody who waits for something to change. The journal is locked.
func (j *Journal) change() {
	close(j.changed)
	j.changed = make(chan struct{})
}

// pause lets some time pass, while the journal is open.
func (j *Journal) pause(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-j.ctx.Done():
	}
}

// fail notes that the spool no longer works.
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
		j.opts.Broken(err) // unlocked, as a logger may ask for Stats
	}
}
