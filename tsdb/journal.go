package tsdb

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/ctxerr"
	"github.com/tidemark-go/tidemark/internal/ingest/buffer"
	"github.com/tidemark-go/tidemark/internal/ingest/spool"
	"github.com/tidemark-go/tidemark/internal/store/catalog"
	"github.com/tidemark-go/tidemark/internal/store/dataset"
	"github.com/tidemark-go/tidemark/internal/store/tenancy"
	"github.com/tidemark-go/tidemark/internal/telemetry"
)

const (
	// journalQueue bounds the records that wait for a sync, in bytes.
	journalQueue = 16 << 20
	// journalGroup is how much of it one commit takes.
	journalGroup = 4 << 20
)

// journal is the disk under a writer: points come in by offer, are synced in groups, go on to the writer's buffer in the
// order of the journal, and leave it once the buffer says what became of them.
type journal struct {
	buffer *buffer.Buffer
	spool  *spool.Spool
	failed func(*buffer.Item, bt.Outcome)
	watch  *telemetry.Writer // nil where nobody watches
	atOnce int               // records that are read from the disk at once

	ctx  context.Context // of everything that goes on behind the callers
	stop context.CancelFunc

	mu       sync.Mutex
	queue    []*pending         // that wait for a sync
	queued   int                // bytes, up to when the callers were told
	offered  uint64             // points that came into the queue
	syncing  uint64             // the number of the first point of the group that is being synced and handed on; 0 for none
	full     bool               // the disk's limit is reached
	oversize *pending           // the point for which there is no room, while the others wait behind it
	giveUp   context.CancelFunc // ends the wait for its room
	closed   bool
	hurry    context.CancelCauseFunc // ends the context of the close that is under way
	failure  error                   // why the spool does nothing any more
	changed  chan struct{}           // closed and replaced when something is done that a caller may wait for
	datasets map[uint64]*dataset.Dataset
	plain    map[uint64]bool // numbers whose records have no generation
	numbers  map[*dataset.Dataset]uint64
	// The rollups that events are added to: by the number and the text of their description, and as programs name them.
	rollups    map[uint64]*added
	addNumbers map[string]uint64
	adds       map[*catalog.Rollup]*added
	feed       feed
	shares     shares
	letters    []letter // that are to be buried
	// condemned are the points that were to become dead letters, buried those of them for which that was done or failed.
	condemned, buried uint64
	erased            atomic.Uint64 // points of erased tenants that were dropped
	ages              ages

	describing sync.Mutex // held while a description is written

	wake, wakeFeed, wakeBury chan struct{}
	wakeScrub                chan struct{} // poked when something of an erased tenant or entity was dropped
	freed                    chan struct{} // poked when the buffer has room again
	synced                   chan struct{} // closed when the last group is synced, after close
	over                     chan struct{} // closed when close has done all that it does
	kept                     error         // what close returns
	tells                    telling
	workers                  sync.WaitGroup
}

func openJournal(opts JournalOptions) (*journal, error) {
	sp, err := spool.Open(opts.Dir, spool.Options{MaxBytes: opts.MaxBytes})
	if err != nil {
		return nil, fmt.Errorf("tsdb: %w", err)
	}
	j := &journal{
		spool:    sp,
		changed:  make(chan struct{}),
		datasets: map[uint64]*dataset.Dataset{},
		plain:    map[uint64]bool{},
		numbers:  map[*dataset.Dataset]uint64{},

		rollups:    map[uint64]*added{},
		addNumbers: map[string]uint64{},
		adds:       map[*catalog.Rollup]*added{},

		shares: shares{held: map[string]int64{}, counted: sp.Stats().Next},

		wake:     make(chan struct{}, 1),
		wakeFeed: make(chan struct{}, 1),
		wakeBury: make(chan struct{}, 1),

		wakeScrub: make(chan struct{}, 1),

		freed:  make(chan struct{}, 1),
		synced: make(chan struct{}),
		over:   make(chan struct{}),
	}
	j.tells.wake = make(chan struct{}, 1)
	if err := j.readDescriptions(); err != nil {
		return nil, errors.Join(err, sp.Close())
	}
	if err := j.countLetters(context.Background()); err != nil {
		return nil, errors.Join(fmt.Errorf("tsdb: %w", err), sp.Close())
	}
	j.feed = newFeed(sp.Stats().First)
	j.ages.note(j.feed.frontier, time.Now())
	j.ctx, j.stop = context.WithCancel(context.Background())
	return j, nil
}

// start begins the delivery into a buffer.
func (j *journal) start(b *buffer.Buffer, e *tenancy.Erasures) {
	j.buffer = b
	j.workers.Go(j.commit)
	j.workers.Go(j.feedOn)
	j.workers.Go(j.bury)
	j.workers.Go(j.tell)
	j.workers.Go(func() { j.purgeOn(e) })
	poke(j.wakeFeed)
}

// change wakes everybody who waits for something to be done. The journal is locked.
func (j *journal) change() {
	close(j.changed)
	j.changed = make(chan struct{})
}

// offer queues a point for the next sync. Its told is called when it is on disk, or will not be; where offer returns an
// error, it is not.
func (j *journal) offer(ctx context.Context, p *pending, try bool) error {
	if err := j.record(ctx, p); err != nil {
		return err
	}
	p.try, p.bytes = try, int64(len(p.record))
	j.mu.Lock()
	for {
		switch {
		case j.closed:
			j.mu.Unlock()
			return ErrWriterClosed
		case try && (j.full || !j.fits(p.item.Tenant, p.bytes)):
			j.mu.Unlock()
			return ErrBufferFull
		case !j.fits(p.item.Tenant, p.bytes):
			j.awaitShare(ctx)
			if err := ctxerr.Of(ctx); err != nil {
				j.mu.Unlock()
				return err
			}
			continue
		case j.queued == 0 || j.queued+len(p.record) <= journalQueue:
			j.queued += len(p.record)
			j.hold(p.item.Tenant, p.bytes)
			j.shares.unsynced += p.bytes
			j.offered++
			p.seq = j.offered
			j.queue = append(j.queue, p)
			j.mu.Unlock()
			poke(j.wake)
			return nil
		case try:
			j.mu.Unlock()
			return ErrBufferFull
		}
		changed := j.changed
		j.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return ctxerr.Of(ctx)
		}
		j.mu.Lock()
	}
}

// record makes the record of a point, or of an event.
func (j *journal) record(ctx context.Context, p *pending) error {
	if p.event != nil {
		number, err := j.describeAdded(ctx, p.event.to)
		if err != nil {
			return err
		}
		p.record = appendEventRecord(make([]byte, 0, len(p.item.Key)+42), number, p.generation, p.item.Tenant, p.event)
		return nil
	}
	number, err := j.describe(ctx, p.write.D)
	if err != nil {
		return err
	}
	path, units, id, ok := p.place()
	if !ok {
		return fmt.Errorf("tsdb: the row key %q is none of dataset %s", p.write.Key, p.write.D.Name)
	}
	p.record = appendRecord(make([]byte, 0, len(p.write.Key)+len(p.write.Payload)+42), number, p.generation, p.item.Tenant, path, units, id, p.write.Payload)
	return nil
}

// put is offer for a caller that waits until its point is on disk.
func (j *journal) put(ctx context.Context, p *pending, try bool) Outcome {
	done := make(chan Outcome, 1)
	p.told = func(o Outcome) { done <- o }
	if err := j.offer(ctx, p, try); err != nil {
		return rejected(err)
	}
	select {
	case o := <-done:
		return o
	case <-ctx.Done():
	}
	if j.withdraw(p) {
		return rejected(ctxerr.Of(ctx))
	}
	select {
	case o := <-done:
		return o
	default:
		return Outcome{State: Unknown, Err: ctxerr.Of(ctx)} // it is being synced just now
	}
}

// withdraw takes a point back that is not being synced yet.
func (j *journal) withdraw(p *pending) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	for i, q := range j.queue {
		if q == p {
			j.queue = append(j.queue[:i], j.queue[i+1:]...)
			if p == j.oversize {
				j.giveUp()
			}
			j.forget(p)
			return true
		}
	}
	return false
}

// forget gives back the room of a point in the queue.
func (j *journal) forget(p *pending) {
	j.shares.unsynced -= p.bytes
	j.hold(p.item.Tenant, -p.bytes)
	j.queued -= len(p.record)
	p.record = nil
	j.change()
}

// poke wakes whoever waits for c.
func poke(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
