package engine

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// maxBatchBytes is the size at which a batch of independent rows is applied. A row's mutation is never split.
const maxBatchBytes = 32 << 20

// applied is a batch that was applied, and the write that its response must wait for.
type applied struct {
	batch *pebble.Batch
	// flight is the batch itself while it is not on disk. It is nil if the batch changes nothing, and with NoSync.
	flight *flight
	// read is set for a batch that changes nothing, if that result depends on writes that readers do not see yet.
	read *state
}

// apply makes a batch visible and writes it to the log, but does not wait until it is on disk; waitDurable does. The
// locks that ordered the write can be released between the two, so that the writes behind it share its sync. The batch
// changes only the rows with the given hashes. The caller holds the rows' locks.
func (e *Engine) apply(b *pebble.Batch, rows ...uint64) (applied, error) {
	if b.Empty() {
		return applied{batch: b, read: e.inFlight.observe(e.db, rows...)}, nil
	}
	if e.noSync {
		err := e.applyUnsynced(b)
		e.unsynced.Store(true) // not earlier: a sync in between would clear it without syncing this write
		if err != nil {
			return applied{}, err
		}
		return applied{batch: b}, nil
	}
	w, err := e.applyInFlight(b, rows, func() error { return e.db.ApplyNoSyncWait(b, pebble.Sync) })
	if err != nil {
		return applied{}, err
	}
	return applied{batch: b, flight: w}, nil
}

// applyInFlight applies a batch and records it as in flight. After an error it is not in flight, or has failed.
func (e *Engine) applyInFlight(b *pebble.Batch, rows []uint64, apply func() error) (*flight, error) {
	e.first.begin(b)
	w := e.inFlight.add(e.db, rows)
	if err := e.applyWith(apply); err != nil {
		e.finishFlight(w, err)
		return nil, err
	}
	e.inFlight.applied(e.db, w)
	return w, nil
}

// finishFlight ends a flight: the write is on disk, or err says why not. It returns the state that shows the write to
// readers. If the engine has failed, the newest state may show the write, so it stays in flight.
func (e *Engine) finishFlight(w *flight, err error) *state {
	if err != nil && e.fault.err() != nil {
		return nil
	}
	defer e.first.end()
	return e.inFlight.remove(w)
}

func (e *Engine) applyWith(apply func() error) error {
	if err := e.fault.err(); err != nil {
		return err
	}
	err := e.guard(func() error {
		if err := apply(); err != nil {
			return storageError(err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return e.fault.err() // Pebble reports a fatal error of the commit there, not in a return value
}

// guard calls a function that writes the log or begins a new one, and turns Pebble's panics into errors.
func (e *Engine) guard(fn func() error) (err error) {
	// Pebble panics if it cannot write the log. The state in memory is then permanently ahead of the disk.
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%w: %v", ErrStorage, r)
			if cause, ok := r.(error); ok {
				err = storageError(cause)
			}
			e.fault.raise(err)
		}
	}()
	return fn()
}

// waitDurable waits until a crash can no longer undo the result of an applied batch and readers see it, and releases
// the batch. If the batch changes nothing, it waits for the writes that the result depends on.
func (e *Engine) waitDurable(ctx context.Context, a applied) error {
	seen, err := e.waitSynced(a)
	if err != nil {
		return err
	}
	return e.awaitShown(ctx, seen)
}

// waitSynced waits until an applied batch is on disk, ends its flight and releases it. It returns the state that shows
// the result to readers; nil means that they see it already.
func (e *Engine) waitSynced(a applied) (seen *state, err error) {
	if a.flight != nil {
		if err = a.batch.SyncWait(); err != nil {
			err = storageError(err)
			e.fault.raise(err)
		}
	}
	if err == nil {
		err = e.fault.err()
	}
	if seen = a.read; a.flight != nil {
		seen = e.finishFlight(a.flight, err)
	}
	if err == nil && a.batch != nil {
		err = e.release(a.batch)
	}
	return seen, err
}

// release returns an applied batch for reuse. Batches of an engine in memory are left to the garbage collector:
// Pebble's pool is shared by the whole process, and testing/synctest forbids that a batch waited for in one bubble is
// used in the next.
func (e *Engine) release(b *pebble.Batch) error {
	if e.memory {
		return nil
	}
	return b.Close()
}

// commit applies a batch, and waits until it is on disk and readers see it, even with NoSync: changes of tables are
// rare.
func (e *Engine) commit(b *pebble.Batch) error {
	w, err := e.applyInFlight(b, nil, func() error { return e.db.Apply(b, pebble.Sync) })
	if err != nil {
		return err
	}
	if err := e.awaitShown(context.Background(), e.finishFlight(w, nil)); err != nil {
		return err
	}
	return e.release(b)
}

// syncInterval is how long a write without its own sync waits for one.
const syncInterval = 500 * time.Millisecond

// syncForever syncs the log periodically for the writes of an engine with NoSync.
func (e *Engine) syncForever(ctx context.Context) {
	ticker := time.NewTicker(syncInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if e.unsynced.Load() {
			if err := e.Sync(ctx); err != nil && e.fault.err() != nil {
				e.log.Error("sync", "error", err)
			}
		}
	}
}

// Sync returns when all acknowledged writes are on disk. Without NoSync they are, and it does nothing.
func (e *Engine) Sync(ctx context.Context) error {
	if !e.noSync || e.memory {
		return nil
	}
	if err := e.enterWrite(ctx); err != nil {
		return err
	}
	defer e.leave()
	e.unsynced.Store(false)
	b := e.db.NewBatch()
	err := b.LogData(nil, nil)
	if err == nil {
		err = e.commit(b)
	}
	if err != nil {
		e.fault.raise(storageError(err))
	}
	return err
}

// Wrote returns a number that changes with each write that waits for the disk, and whether there was a write since the
// given number. With NoSync it reports whether there was one since the last sync.
func (e *Engine) Wrote(since uint64) (now uint64, wrote bool) {
	if e.noSync {
		return 0, e.unsynced.Load()
	}
	e.inFlight.mu.Lock()
	defer e.inFlight.mu.Unlock()
	return e.inFlight.last, e.inFlight.last != since
}

// readError classifies an error of a read. Damage also ends writing: Pebble cannot compact damaged files, and writes on
// top of them would eventually wait forever.
func (e *Engine) readError(err error) error {
	if err == nil || !pebble.IsCorruptionError(err) {
		return err
	}
	err = storageError(err)
	e.fault.raise(err)
	return err
}

// applyLazily applies a batch that need not survive a crash, and releases it. Readers see it at the latest when no
// write is in flight.
func (e *Engine) applyLazily(b *pebble.Batch) error {
	if !b.Empty() {
		if err := e.applyUnsynced(b); err != nil {
			return err
		}
	}
	return e.release(b)
}

// applyUnsynced applies a batch that is not in flight. After a failure the newest state may show it, so nothing is
// remembered any more.
func (e *Engine) applyUnsynced(b *pebble.Batch) error {
	e.first.begin(b)
	err := e.applyWith(func() error { return e.db.Apply(b, pebble.NoSync) })
	if e.fault.err() == nil {
		e.first.end()
	}
	return err
}

// compact merges the table files of a range, and stops if the engine fails.
func (e *Engine) compact(ctx context.Context, from, to []byte) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan struct{})
	defer close(done)
	go func() {
		select {
		case <-e.fault.raised:
			cancel()
		case <-done:
		}
	}()
	e.inFlight.left.close() // a compaction keeps what a snapshot shows
	if err := e.db.Compact(ctx, from, to, false); err != nil {
		return cmp.Or(e.fault.err(), e.readError(err))
	}
	return nil
}
