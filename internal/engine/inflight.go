package engine

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"

	"github.com/tidemark-go/tidemark/internal/reach"
)

// reusedHashes bounds the slices that flights keep: one with room for more row hashes is not reused.
const reusedHashes = 1 << 10

// inFlight tracks the writes that are not on disk yet. Pebble makes a batch visible before its sync, but a reader must
// see nothing that a crash can undo. So readers use the newest state that is wholly on disk:
//
//   - While no write is in flight, that is the newest state of all.
//   - The first write in flight keeps a snapshot of the state before it, as the current one.
//   - Each write that becomes visible while others are in flight takes a snapshot. A write that was alone gets one when the
//     next write begins. Once all writes that such a snapshot shows are on disk, it replaces the current one.
//
// A write is acknowledged when readers see it. A failed write stays in flight, and the state before it stays current.
type inFlight struct {
	// count is the number of writes. While it is 0, a read pays only for loading it.
	count atomic.Int64

	current current

	mu          sync.Mutex
	last        uint64   // number of the newest flight
	first, tail *flight  // by number
	free        *flight  // for reuse, linked by next
	taken       []*state // not current yet, by age

	left leftStates
}

// flight is one write in flight.
type flight struct {
	number  uint64
	rows    []uint64 // hashes of the rows that it changes
	visible bool
	seen    *state // the first one that shows the write, unless it was alone since it became visible

	prev, next *flight
}

// state is a snapshot of the database.
type state struct {
	snap  *pebble.Snapshot
	refs  atomic.Int64
	to    uint64        // it shows no flight with a higher number
	shown chan struct{} // closed when readers use this state or a newer one
}

// current is the state that readers use while writes are in flight.
type current struct {
	mu    sync.RWMutex // never held while the database takes or closes a snapshot, which can wait
	state *state
}

// set replaces the state, and returns the former one.
func (c *current) set(s *state) (former *state) {
	c.mu.Lock()
	defer c.mu.Unlock()
	former, c.state = c.state, s
	return former
}

// take takes a snapshot of the newest state. The caller holds mu.
func (f *inFlight) take(db *pebble.DB) *state {
	s := &state{snap: db.NewSnapshot(), to: f.last}
	s.refs.Store(1)
	return s
}

// takeNext takes a snapshot that becomes current once all writes that it shows are on disk. The caller holds mu.
func (f *inFlight) takeNext(db *pebble.DB) *state {
	s := f.take(db)
	s.shown = make(chan struct{})
	f.taken = append(f.taken, s)
	return s
}

// add adds a write that is about to become visible.
func (f *inFlight) add(db *pebble.DB, rows []uint64) *flight {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.first == nil:
		f.current.set(f.take(db))
	case f.first == f.tail && f.first.visible && f.first.seen == nil:
		f.first.seen = f.takeNext(db) // the last chance for one without the new write
	}
	w := f.free
	if w == nil {
		w = new(flight)
	} else {
		f.free, w.next = w.next, nil
	}
	f.last++
	w.number = f.last
	w.rows = append(w.rows, rows...)
	if w.prev = f.tail; w.prev == nil {
		f.first = w
	} else {
		w.prev.next = w
	}
	f.tail = w
	f.count.Add(1)
	return w
}

// applied records that a write is visible.
func (f *inFlight) applied(db *pebble.DB, w *flight) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if w.visible = true; f.first != f.tail {
		w.seen = f.takeNext(db)
	}
}

// remove removes a write that is on disk, or that never became visible. Readers see the write once the returned state
// is shown; nil means that they see it already.
func (f *inFlight) remove(w *flight) *state {
	f.mu.Lock()
	if w.prev == nil {
		f.first = w.next
	} else {
		w.prev.next = w.next
	}
	if w.next == nil {
		f.tail = w.prev
	} else {
		w.next.prev = w.prev
	}
	seen := w.seen
	if cap(w.rows) > reusedHashes {
		w.rows = nil
	}
	*w = flight{rows: w.rows[:0], next: f.free}
	f.free = w
	f.count.Add(-1)
	old := f.advance()
	f.mu.Unlock()
	f.release(old...)
	return seen
}

// advance makes the newest state current that is wholly on disk, and returns those that it replaces. The caller holds
// mu.
func (f *inFlight) advance() (old []*state) {
	n := 0
	for n < len(f.taken) && (f.first == nil || f.taken[n].to < f.first.number) {
		n++
	}
	switch {
	case f.first == nil:
		old = append([]*state{f.current.set(nil)}, f.taken...)
	case n > 0:
		old = append([]*state{f.current.set(f.taken[n-1])}, f.taken[:n-1]...)
	default:
		return nil
	}
	for _, s := range f.taken[:n] {
		close(s.shown)
	}
	f.taken = slices.Delete(f.taken, 0, n)
	return old
}

// observe returns the state that shows readers what the caller has found in the newest state of rows; nil means that
// they see it already. The caller holds the rows' locks.
func (f *inFlight) observe(db *pebble.DB, rows ...uint64) *state {
	if f.count.Load() == 0 {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for w := f.first; w != nil; w = w.next {
		if w.changes(rows) {
			return f.takeNext(db)
		}
	}
	if n := len(f.taken); n > 0 {
		return f.taken[n-1] // a write of the rows may be on disk, and wait for one of these
	}
	return nil
}

// manyRows bounds the comparisons of row hashes. Beyond it, rows count as changed.
const manyRows = 1 << 16

func (w *flight) changes(rows []uint64) bool {
	if len(rows)*len(w.rows) > manyRows {
		return true
	}
	return slices.ContainsFunc(rows, func(h uint64) bool { return slices.Contains(w.rows, h) })
}

// close closes all states. No reader uses one any more.
func (f *inFlight) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.release(append(f.taken, f.current.set(nil))...)
	f.taken = nil
	f.left.close()
}

// awaitShown waits until readers see a state. It fails if a write that the state shows has failed.
func (e *Engine) awaitShown(ctx context.Context, s *state) error {
	if s == nil {
		return nil
	}
	select {
	case <-s.shown:
		return nil
	default:
	}
	reach.Point(reach.AwaitedView)
	select {
	case <-s.shown:
		return nil
	case <-e.fault.raised:
		return e.fault.err()
	case <-ctx.Done():
		return ctx.Err()
	}
}

// newest reports whether readers use the newest state: no write was in flight when the function was called.
func (e *Engine) newest() bool { return e.noSync || e.inFlight.count.Load() == 0 }

// iterate returns an iterator on the state that readers use.
func (e *Engine) iterate(o *pebble.IterOptions) (*pebble.Iterator, error) {
	for {
		if e.newest() {
			it, err := e.db.NewIter(o)
			if err != nil || e.newest() { // now every write that it shows is on disk
				return it, err
			}
			if err := it.Close(); err != nil {
				return nil, err
			}
		}
		c := &e.inFlight.current
		c.mu.RLock()
		if c.state != nil {
			defer c.mu.RUnlock()
			return c.state.snap.NewIter(o)
		}
		c.mu.RUnlock()
	}
}

// hold returns the state that readers use. The caller releases it.
func (e *Engine) hold() *state {
	for {
		if e.newest() {
			s := &state{snap: e.db.NewSnapshot()}
			s.refs.Store(1)
			if e.newest() {
				return s
			}
			e.inFlight.release(s)
		}
		c := &e.inFlight.current
		c.mu.RLock()
		if s := c.state; s != nil {
			s.refs.Add(1)
			c.mu.RUnlock()
			return s
		}
		c.mu.RUnlock()
	}
}
