package engine

import (
	"bytes"
	"context"

	"github.com/cockroachdb/pebble/v2"
)

// An iterator keeps the memtables of its moment in memory, even those that have been flushed since. A slow reader would
// keep one buffer after the other. So after each flush the readers give their iterators back: those between two parts
// of a response at once, the others after their part. Such a reader has paused: it holds only a snapshot, if it has
// one, and where to go on. A flush writes a whole buffer, so pauses are rare. Readers of a weak engine pause after
// every part.

// pauseForever pauses the readers after each flush, until the context ends.
func (e *Engine) pauseForever(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-e.pressure.flushed:
		}
		for _, r := range e.readers.all() {
			r.stale.Store(true) // before TryLock: if it fails, the holder pauses the reader when it unlocks
			if r.mu.TryLock() {
				r.unlock()
			}
		}
	}
}

// unlock releases mu, and pauses the reader if it is stale.
func (r *Reader) unlock() {
	for {
		if r.stale.Swap(false) {
			r.pause()
		}
		r.mu.Unlock()
		if !r.stale.Load() || !r.mu.TryLock() {
			return
		}
	}
}

// pause gives the iterator back. The caller holds mu.
func (r *Reader) pause() {
	it := r.scan.it
	if it == nil {
		r.scan.giveBack()
		return
	}
	if it.Error() != nil { // the next part reports the error
		return
	}
	r.last = bytes.Clone(r.scan.prefix)
	_ = r.closeIterator() // an error would have been the iterator's
}

// resume opens an iterator: at the beginning of the reader's life, or where it paused.
func (r *Reader) resume() (err error) {
	opts := &pebble.IterOptions{LowerBound: r.span.lower, UpperBound: r.span.upper}
	if r.state != nil {
		r.scan.it, err = r.state.snap.NewIter(opts)
	} else {
		r.scan.it, err = r.e.iterate(opts)
	}
	if err != nil {
		r.scan.it = nil
		return storageError(err)
	}
	r.scan.borrow()
	r.skipped = 0
	switch {
	case r.last == nil:
	case r.reverse:
		r.scan.it.SeekLT(r.last)
	default:
		r.scan.it.SeekGE(afterTerminator(r.last))
	}
	return r.scan.it.Error()
}

// closeIterator closes the iterator, if there is one.
func (r *Reader) closeIterator() error {
	it := r.scan.it
	if it == nil {
		return nil
	}
	r.leaveSpan()
	r.scan.it = nil
	r.scan.giveBack()
	return it.Close()
}
