package engine

import (
	"bytes"
	"context"
	"slices"
	"sync"
	"sync/atomic"
)

const (
	flightSlots  = 1 << 14 // a multiple of 64; each is 8 bytes
	reusedHashes = 1 << 10 // a flight whose slice has room for more row hashes is not reused
)

// inFlight tracks the writes that are visible to readers but not on disk yet. Pebble makes a batch visible before its
// sync, so a response that depends on such a write waits for it: see dependency.
//
// A write is added before it becomes visible and removed once it is on disk. A failed write stays: its changes remain
// visible, and a crash undoes them.
type inFlight struct {
	// count is the number of writes. While it is 0, a read pays only for loading it.
	count atomic.Int64
	// slots hold the number of the newest write to any row of the slot. So a long read knows without the mutex that
	// most of its rows are on disk.
	slots [flightSlots]atomic.Uint64

	mu          sync.Mutex
	last        uint64  // number of the newest flight
	first, tail *flight // by number
	free        *flight // for reuse, linked by next
}

// flight is one write in flight.
type flight struct {
	number  uint64
	rows    []uint64      // hashes of the rows that it changes
	removed span          // where it may have deleted rows; empty means nowhere
	done    chan struct{} // closed when it is on disk or has failed; created by the first waiter
	err     error         // why it will not reach the disk

	prev, next *flight
}

// add adds a write that is about to become visible.
func (f *inFlight) add(removed span, rows []uint64) *flight {
	f.mu.Lock()
	defer f.mu.Unlock()
	w := f.free
	if w == nil {
		w = new(flight)
	} else {
		f.free, w.next = w.next, nil
	}
	f.last++
	w.number, w.removed = f.last, removed
	w.rows = append(w.rows, rows...)
	for _, h := range rows {
		f.slots[h%flightSlots].Store(w.number)
	}
	if w.prev = f.tail; w.prev == nil {
		f.first = w
	} else {
		w.prev.next = w
	}
	f.tail = w
	f.count.Add(1)
	return w
}

// remove removes a write that is on disk, or that never became visible.
func (f *inFlight) remove(w *flight) {
	f.mu.Lock()
	defer f.mu.Unlock()
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
	f.count.Add(-1)
	if w.done != nil {
		close(w.done)
	}
	if cap(w.rows) > reusedHashes {
		w.rows = nil
	}
	*w = flight{rows: w.rows[:0], next: f.free}
	f.free = w
}

// fail marks a write as failed: a crash may undo changes that readers see.
func (f *inFlight) fail(w *flight, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if w.err = err; w.done != nil {
		close(w.done)
	}
}

// dependency returns the writes that a response may depend on. Call it after taking the database snapshot: before, the
// snapshot could show a write that was added later.
func (f *inFlight) dependency() dependency {
	if f.count.Load() == 0 {
		return dependency{}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.first == nil {
		return dependency{}
	}
	return dependency{writes: f, from: f.first.number, to: f.last}
}

// dependency is the writes that were in flight when a snapshot was taken. The zero value is none.
type dependency struct {
	writes   *inFlight
	from, to uint64 // numbers, both inclusive
}

// any reports whether there may be any writes.
func (d *dependency) any() bool { return d.writes != nil }

// each calls visit for each of the writes that is still in flight, until visit returns false. The caller holds the
// mutex.
func (d *dependency) each(visit func(*flight) bool) {
	for w := d.writes.first; w != nil && w.number <= d.to && visit(w); w = w.next {
	}
}

// onRow reports whether one of the writes changed a row, given by its hash.
func (d *dependency) onRow(hash uint64) (found bool) {
	if !d.any() || d.writes.slots[hash%flightSlots].Load() < d.from {
		return false
	}
	d.writes.mu.Lock()
	defer d.writes.mu.Unlock()
	d.each(func(w *flight) bool {
		found = slices.Contains(w.rows, hash)
		return !found
	})
	return found
}

// onRemoval reports whether one of the writes may have deleted rows in one of the spans.
func (d *dependency) onRemoval(spans []span) (found bool) {
	if !d.any() {
		return false
	}
	d.writes.mu.Lock()
	defer d.writes.mu.Unlock()
	d.each(func(w *flight) bool {
		found = !w.removed.empty() && slices.ContainsFunc(spans, func(s span) bool {
			return bytes.Compare(s.lower, w.removed.upper) < 0 && bytes.Compare(w.removed.lower, s.upper) < 0
		})
		return !found
	})
	return found
}

// wait waits until all of the writes are on disk. They share few syncs; afterwards the snapshot depends on nothing
// more. It returns the failure of one of them, or the context's error.
func (d *dependency) wait(ctx context.Context) error {
	for d.any() {
		done, err := d.next()
		switch {
		case err != nil:
			return err
		case done == nil:
			*d = dependency{}
			return nil
		}
		select {
		case <-done:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// next returns what to wait for next, or nil if nothing is left.
func (d *dependency) next() (done <-chan struct{}, err error) {
	d.writes.mu.Lock()
	defer d.writes.mu.Unlock()
	d.each(func(w *flight) bool {
		if err = w.err; err != nil {
			return false
		}
		if w.done == nil {
			w.done = make(chan struct{})
		}
		done = w.done
		return false
	})
	return done, err
}
