package journal

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tidemark-go/tidemark/internal/ctxerr"
	"github.com/tidemark-go/tidemark/internal/ingest/buffer"
)

// Flush returns when all writes that were taken before have been delivered or rejected, and every caller was called.
func (j *Journal) Flush(ctx context.Context) error {
	j.mu.Lock()
	last := j.enqueued
	j.mu.Unlock()
	if err := j.await(ctx, func() bool {
		return (j.syncing == 0 || j.syncing > last) && (j.queue.first() == nil || j.queue.oldest() > last)
	}); err != nil {
		return err
	}
	target := j.spool.Stats().Next
	if err := j.await(ctx, func() bool { return j.feed.past(target) }); err != nil {
		return err
	}
	if err := j.buffer.Flush(ctx); err != nil {
		return err
	}
	j.mu.Lock()
	rejected := j.rejected.total
	j.mu.Unlock()
	if err := j.await(ctx, func() bool { return j.rejected.ended >= rejected }); err != nil {
		return err
	}
	return j.awaitCallers(ctx)
}

// await waits until a condition holds, or the journal fails, or ctx ends. It calls the condition with the journal
// locked.
func (j *Journal) await(ctx context.Context, condition func() bool) error {
	for {
		j.mu.Lock()
		ok, changed, failure := condition(), j.changed, j.failure
		j.mu.Unlock()
		switch {
		case ok:
			return nil
		case failure != nil:
			return failure
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctxerr.Of(ctx)
		case <-j.ctx.Done():
			return buffer.ErrClosed
		}
	}
}

// lastWait is how long Close waits, after its context has ended, for cancelled requests and for callers.
const lastWait = time.Second

// Close accepts no more writes, delivers as much as it can until ctx ends, and returns an error that matches
// ErrUndelivered if records are left. A second call returns the same error; if its own context ends earlier, it ends
// the delivery.
func (j *Journal) Close(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	j.mu.Lock()
	first := !j.closed
	if first {
		j.closed, j.cancelClose = true, cancel
	}
	j.change()
	j.mu.Unlock()
	if first {
		defer close(j.ended)
		wake(j.wakeSync)
		j.closeErr = j.end(ctx)
		return j.closeErr
	}
	select {
	case <-j.ended:
	case <-ctx.Done():
		j.cancelClose(context.Cause(ctx))
		<-j.ended
	}
	return j.closeErr
}

func (j *Journal) end(ctx context.Context) error {
	err := j.drain(ctx)
	if err != nil {
		j.lastSync(ctx)
	}
	// Requests that are running when ctx ends are cancelled. Writes that the service has answered by then leave the
	// journal.
	j.stop()
	wake(j.wakeSync)
	_ = j.buffer.Close(ctx)
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastWait)
	defer cancel()
	_ = j.buffer.Close(last)
	synced := false
	select {
	case <-j.synced:
		synced = true
	case <-last.Done():
	}
	j.callers.Lock()
	j.callers.closed = true
	j.callers.Unlock()
	wake(j.callers.wake)
	done := make(chan struct{})
	go func() {
		j.workers.Wait()
		close(done)
	}()
	finished := false
	select {
	case <-done:
		finished = true
	case <-last.Done():
	}
	switch n := j.spool.Stats().Records; {
	case n > 0:
		err = errors.Join(fmt.Errorf("%w: %d", ErrUndelivered, n), err)
	case synced && finished && ctx.Err() != nil && (errors.Is(err, context.Cause(ctx)) || err == ctx.Err()):
		err = nil // ctx ended, but everything was done
	}
	return errors.Join(err, j.spool.Close())
}

// lastSync waits for the sync of what was taken before Close, unless it waits for room: nobody may know of points that
// a writer held.
func (j *Journal) lastSync(ctx context.Context) {
	j.mu.Lock()
	full := j.full
	j.mu.Unlock()
	if full {
		return
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastWait)
	defer cancel()
	select {
	case <-j.synced:
	case <-last.Done():
	}
}

// drain waits until everything is delivered.
func (j *Journal) drain(ctx context.Context) error {
	select {
	case <-j.synced:
	case <-ctx.Done():
		return ctxerr.Of(ctx)
	}
	return j.Flush(ctx)
}
