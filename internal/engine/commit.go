package engine

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// maxBatchBytes is how large a batch of independent rows grows before it is applied. A row's mutation is never split.
const maxBatchBytes = 32 << 20

// apply makes a batch visible and puts it in the log, but does not wait until it is on disk: settle does. Between the
// two, the locks that ordered the write can be released, so that the writes behind it share its sync.
func (e *Engine) apply(b *pebble.Batch) error {
	return e.applyWith(b, func() error {
		if e.noSync {
			err := e.db.Apply(b, pebble.NoSync)
			e.unsynced.Store(true) // not before: a sync in between would take it for its own
			return err
		}
		return e.db.ApplyNoSyncWait(b, pebble.Sync)
	})
}

func (e *Engine) applyWith(b *pebble.Batch, apply func() error) error {
	if b.Empty() {
		return nil
	}
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
	return e.fault.err() // a fatal error of the commit is reported there, and by no return value
}

// guard runs what writes the log or begins a new one, and turns a panic of Pebble's into an error.
func (e *Engine) guard(fn func() error) (err error) {
	// A log that cannot be written makes Pebble panic. The state in memory is then ahead of the disk for good.
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

// settle waits until an applied batch is on disk, and releases it.
func (e *Engine) settle(b *pebble.Batch) error {
	if !e.noSync && !b.Empty() {
		if err := b.SyncWait(); err != nil {
			err = storageError(err)
			e.fault.raise(err)
			return err
		}
		if err := e.fault.err(); err != nil {
			return err
		}
	}
	return e.release(b)
}

// release gives a batch that was applied back for reuse. That of an engine in memory is left to the garbage collector:
// Pebble's pool is of the whole process, and a batch that has been waited for in one bubble of testing/synctest must not
// come up in the next.
func (e *Engine) release(b *pebble.Batch) error {
	if e.memory {
		return nil
	}
	return b.Close()
}

// commit applies a batch and waits until it is on disk, whatever the options say: changes of tables are rare.
func (e *Engine) commit(b *pebble.Batch) error {
	if err := e.applyWith(b, func() error { return e.db.Apply(b, pebble.Sync) }); err != nil {
		return err
	}
	return e.release(b)
}

// syncInterval is how long a write without a sync of its own waits for one.
const syncInterval = 500 * time.Millisecond

// syncForever syncs the log for writes that did not.
func (e *Engine) syncForever(ctx context.Context) {
	ticker := time.NewTicker(syncInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if !e.unsynced.Swap(false) || e.enterWrite(ctx) != nil {
			continue
		}
		b := e.db.NewBatch()
		err := b.LogData(nil, nil)
		if err == nil {
			err = e.commit(b)
		}
		if err != nil {
			e.log.Error("sync", "error", err)
			e.fault.raise(storageError(err))
		}
		e.leave()
	}
}

// readError classifies an error that came up while reading. Damage also ends writing: what is damaged cannot be compacted,
// and writes on top of it would in the end wait for ever.
func (e *Engine) readError(err error) error {
	if err == nil || !pebble.IsCorruptionError(err) {
		return err
	}
	err = storageError(err)
	e.fault.raise(err)
	return err
}

// applyLazily applies a batch that need not survive a crash, and releases it.
func (e *Engine) applyLazily(b *pebble.Batch) error {
	if err := e.applyWith(b, func() error { return e.db.Apply(b, pebble.NoSync) }); err != nil {
		return err
	}
	return e.release(b)
}

// compact merges the table files of a range, and gives up when the fault is raised.
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
	if err := e.db.Compact(ctx, from, to, false); err != nil {
		return cmp.Or(e.fault.err(), e.readError(err))
	}
	return nil
}
