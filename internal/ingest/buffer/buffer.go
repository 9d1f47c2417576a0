package buffer

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/ctxerr"
	"github.com/tidemark-go/tidemark/internal/invalid"
)

var (
	// ErrFull means that the buffer, or the tenant's share of it, has no room.
	ErrFull = errors.New("tsdb: the writer's buffer is full")
	// ErrClosed means that the buffer is closed, or was closed before the item could be sent.
	ErrClosed = invalid.Under(bt.ErrClosed, "tsdb: the writer is closed")
	// ErrTimeout means that the item could not be delivered within Options.Delivery.
	ErrTimeout = errors.New("tsdb: not delivered in time")
)

// Buffer is the writer's buffer. Create it with New. It is safe for concurrent use.
type Buffer struct {
	opts   Options
	sender Sender
	seed   maphash.Seed
	ctx    context.Context // of all attempts
	stop   context.CancelCauseFunc

	mu            sync.Mutex
	lanes         map[laneID]*lane
	ring          ring
	waiting       int              // items in the lanes, except those in chunks
	rows          map[uint64]*list // taken rows, each with the items that wait for it
	retries       groups           // items between two attempts
	throttled     int              // throttled batches in flight; see permit
	lastThrottled bool             // the last batch was throttled
	gov           governor
	downSince     time.Time           // when the service went down; zero if it is up
	inFlight      map[*batch]struct{} // batches in flight

	held      int
	heldBytes int64
	sharing   Sharing
	blocked   []*lane // lanes in which callers wait for room
	turn      int     // index in blocked of the lane whose turn is next

	gens    []generation // generations that have not ended; the current one is last
	flushes []*flush
	idle    chan struct{} // closed when the buffer is closed and empty
	closed  bool
	closing chan struct{}

	timerAt time.Time // when the dispatcher's timer wakes it; zero means never
	expiry  time.Time // the earliest deadline of an item, or earlier; zero means none
	stats   Stats

	wake    chan struct{}
	reports struct {
		sync.Mutex
		items []ending
		wake  chan struct{}
	}
	workers sync.WaitGroup
}

// generation is the items that arrived between two flushes.
type generation struct {
	n    uint64
	open int // items that have not ended
}

type flush struct {
	gen  uint64
	done chan struct{}
}

// ending is an ended item that is still to be reported.
type ending struct {
	it  *Item
	out bt.Outcome
}

// New returns an empty buffer. It runs two goroutines, and one for each batch in flight, until Close.
func New(sender Sender, opts Options) *Buffer {
	q := &Buffer{
		opts:     opts,
		sender:   sender,
		seed:     maphash.MakeSeed(),
		lanes:    map[laneID]*lane{},
		rows:     map[uint64]*list{},
		inFlight: map[*batch]struct{}{},
		gov:      newGovernor(opts.InFlight),
		gens:     []generation{{}},
		idle:     make(chan struct{}),
		closing:  make(chan struct{}),
		wake:     make(chan struct{}, 1),
	}
	q.reports.wake = make(chan struct{}, 1)
	q.ctx, q.stop = context.WithCancelCause(context.Background())
	q.workers.Go(q.dispatch)
	q.workers.Go(q.reportLoop)
	return q
}

// Enqueue adds an item, and waits for room until ctx ends. Its error is ErrClosed or ctx's; the item is then not added.
func (q *Buffer) Enqueue(ctx context.Context, it *Item) error {
	floods, err := q.put(it, func(l *lane) error { return q.wait(ctx, l, int64(it.Bytes)) })
	if floods {
		runtime.Gosched()
	}
	return err
}

// floodsFrom is how many batches of a tenant make a flood.
const floodsFrom = 2

// YieldEvery is after how many items a caller of a tenant that floods yields the processor, if other tenants write too.
// Callers that do not yield run for 10 ms at a time, and each step of a quiet tenant's item waits for several of them.
const YieldEvery = 4

// Sharing counts items, and knows when the tenant changed last. The zero value has seen no item.
type Sharing struct {
	tenant  string // of the newest item
	items   uint64
	changed uint64 // items before the last change
}

// sharedFor is for how many items after a change several tenants count as writing: some seconds of a flood.
const sharedFor = 1 << 20

// Add counts an item of a tenant, and reports whether several tenants write.
func (s *Sharing) Add(tenant string) bool {
	if tenant != s.tenant {
		if s.items > 0 {
			s.changed = s.items
		}
		s.tenant = tenant
	}
	s.items++
	return s.changed > 0 && s.items-s.changed < sharedFor
}

// TryEnqueue is Enqueue without the wait: it returns ErrFull instead.
func (q *Buffer) TryEnqueue(it *Item) error {
	_, err := q.put(it, func(*lane) error { return ErrFull })
	return err
}

// put adds an item, and reports whether its caller is to yield the processor.
func (q *Buffer) put(it *Item, full func(*lane) error) (floods bool, err error) {
	it.hash = maphash.String(q.seed, it.Key)
	it.arrived = time.Now()
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return false, ErrClosed
	}
	shared := q.sharing.Add(it.Tenant)
	id := laneID{it.Tenant, it.Alone}
	l := q.lanes[id]
	if l == nil {
		l = &lane{id: id, budget: retryBudget}
		q.lanes[id] = l
	}
	if len(l.blocked) == 0 && q.fits(l, int64(it.Bytes)) {
		q.take(l, int64(it.Bytes))
	} else if err := full(l); err != nil {
		q.drop(l)
		return false, err
	} else {
		it.arrived = time.Now() // under the lock, so that the lane's items are in time order
	}
	it.lane = l
	g := &q.gens[len(q.gens)-1]
	it.gen = g.n
	g.open++
	q.push(l, it, false)
	q.expireBy(it)
	if q.needsWake(l, it) {
		q.poke()
	}
	return shared && l.held > floodsFrom*q.opts.BatchEntries && l.held%YieldEvery == 0, nil
}

// needsWake reports whether a new item of the lane must wake the dispatcher. The end of a batch wakes it anyway.
func (q *Buffer) needsWake(l *lane, it *Item) bool {
	sleeps := q.timerAt.IsZero()
	switch {
	case l.failed > 0:
		return true
	case sleeps && q.opts.Delivery > 0: // the dispatcher must watch the item's deadline
		return true
	case len(q.inFlight) >= q.gov.slots(), !q.canSend(l):
		return false
	case it.arrived.Before(q.gov.ready()):
		return sleeps
	}
	return sleeps || it.arrived.Add(q.opts.Linger).Before(q.timerAt) || q.waiting >= q.opts.BatchEntries || q.full(l)
}

// full reports whether the lane's own items fill a batch.
func (q *Buffer) full(l *lane) bool {
	return l.waiting >= q.entries(l) || l.bytes >= q.opts.BatchBytes || l.muts >= q.opts.BatchMutations
}

// poke wakes the dispatcher.
func (q *Buffer) poke() { signal(q.wake) }

// signal wakes the goroutine that waits for a channel with room for one signal. Nobody waits for nil.
func signal(wake chan struct{}) {
	select {
	case wake <- struct{}{}:
	default:
	}
}

// Flush sends waiting items at once. It returns when every item that was added before has ended and its Done has
// returned, or when ctx ends.
func (q *Buffer) Flush(ctx context.Context) error {
	q.mu.Lock()
	last := &q.gens[len(q.gens)-1]
	if len(q.gens) == 1 && last.open == 0 {
		q.mu.Unlock()
		return nil
	}
	f := &flush{gen: last.n, done: make(chan struct{})}
	if last.open > 0 {
		q.gens = append(q.gens, generation{n: last.n + 1})
	} else {
		f.gen--
	}
	q.flushes = append(q.flushes, f)
	q.poke()
	q.mu.Unlock()
	select {
	case <-f.done:
		return nil
	case <-ctx.Done():
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.flushes = slices.DeleteFunc(q.flushes, func(g *flush) bool { return g == f })
	return ctxerr.Of(ctx)
}

// Close refuses new items, sends waiting ones, and returns when all have ended. If ctx ends first, Close cancels
// running attempts; each remaining item ends with ErrClosed and the outcome that is known of it. Done is still called
// for these items, but Close does not wait for it. A second Close waits like the first.
func (q *Buffer) Close(ctx context.Context) error {
	q.mu.Lock()
	if !q.closed {
		q.closed = true
		close(q.closing)
		q.poke()
		if q.held == 0 {
			q.signalIdle()
		}
	}
	q.mu.Unlock()
	select {
	case <-q.idle:
	case <-ctx.Done():
	}
	select {
	case <-q.idle: // checked first, because ctx may have ended too
		q.workers.Wait()
		return nil
	default:
	}
	err := ctxerr.Of(ctx)
	q.stop(fmt.Errorf("%w: %w", ErrClosed, err))
	q.poke()
	return err
}

// signalIdle stops the goroutines of a closed, empty buffer.
func (q *Buffer) signalIdle() {
	if !q.closed {
		return
	}
	select {
	case <-q.idle:
	default:
		close(q.idle)
	}
}

// Stats returns the buffer's contents and counters.
func (q *Buffer) Stats() Stats {
	now := time.Now()
	q.mu.Lock()
	defer q.mu.Unlock()
	s := q.stats
	s.Entries, s.Bytes = q.held, q.heldBytes
	s.InFlight, s.Slots = len(q.inFlight), q.gov.slots()
	s.Rate = q.gov.pacer.rateAt(now)
	s.Down = q.gov.down
	oldest := now
	q.each(func(it *Item) {
		if c := it.coalesced.head; c != nil {
			it = c
		}
		if it.arrived.Before(oldest) {
			oldest = it.arrived
		}
	})
	s.Oldest = now.Sub(oldest)
	return s
}

// each calls f for the oldest item of each queue, and for all items that are in flight or between two attempts.
func (q *Buffer) each(f func(*Item)) {
	for _, l := range q.lanes {
		for _, it := range []*Item{l.front.head, l.queue.head} {
			if it != nil {
				f(it)
			}
		}
		for _, c := range l.chunks {
			for _, it := range c {
				f(it)
			}
		}
	}
	for b := range q.inFlight {
		for _, it := range b.items {
			f(it)
		}
	}
	for _, g := range q.retries {
		for _, it := range g.items {
			f(it)
		}
	}
}

// end ends items, and the earlier items that they coalesce. It frees their rows, and queues the items that have a Done
// for reportLoop.
func (q *Buffer) end(items []ending) {
	reported := 0
	for _, e := range items {
		for it := e.it.coalesced.pop(); it != nil; it = e.it.coalesced.pop() {
			items = append(items, ending{it, e.out})
		}
	}
	for i, e := range items {
		switch e.out.State {
		case bt.Stored:
			q.stats.Stored++
		case bt.Rejected:
			q.stats.Rejected++
		default:
			q.stats.Unknown++
		}
		if e.it.claimed {
			q.release(e.it)
		}
		if e.it.Done != nil || e.out.State != bt.Stored && q.opts.Failed != nil {
			items[reported], items[i] = items[i], items[reported]
			reported++
		} else {
			q.finish(e.it)
		}
	}
	if reported == 0 {
		return
	}
	q.reports.Lock()
	q.reports.items = append(q.reports.items, items[:reported]...)
	q.reports.Unlock()
	signal(q.reports.wake)
}

// finish frees an item's room and subtracts the item from its generation.
func (q *Buffer) finish(it *Item) {
	first := q.gens[0].n
	q.gens[it.gen-first].open--
	for len(q.gens) > 1 && q.gens[0].open == 0 {
		q.gens = q.gens[1:]
	}
	if len(q.flushes) > 0 {
		done, last := q.gens[0].n, len(q.gens) == 1 && q.gens[0].open == 0
		q.flushes = slices.DeleteFunc(q.flushes, func(f *flush) bool {
			if over := f.gen < done || last; over {
				close(f.done)
				return true
			}
			return false
		})
	}
	q.giveBack(it)
	if q.opts.Free != nil {
		q.opts.Free(it)
	}
}

// reportChunk is how many ended items are reported before their room is freed.
const reportChunk = 64

// reportLoop calls Failed and Done, outside the sending path. Items keep their room until these return, so slow callers
// slow down new items and the queue stays bounded.
func (q *Buffer) reportLoop() {
	var items []ending
	for {
		select {
		case <-q.reports.wake:
		case <-q.idle:
			return
		}
		q.reports.Lock()
		items, q.reports.items = q.reports.items, items[:0]
		q.reports.Unlock()
		for part := range slices.Chunk(items, reportChunk) {
			for _, e := range part {
				if e.out.State != bt.Stored && q.opts.Failed != nil {
					q.opts.Failed(e.it, e.out)
				}
				if e.it.Done != nil {
					e.it.Done(e.it, e.out)
				}
			}
			q.mu.Lock()
			for _, e := range part {
				q.finish(e.it)
			}
			q.mu.Unlock()
			clear(part)
		}
	}
}
