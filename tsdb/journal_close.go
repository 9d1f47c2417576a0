package tsdb

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tidemark-go/tidemark/internal/ctxerr"
)

// flush returns when all points that are in the journal or on their way to it by now have been delivered or refused, and
// everybody was told.
func (j *journal) flush(ctx context.Context) error {
	j.mu.Lock()
	last := j.offered
	j.mu.Unlock()
	on := func() bool {
		return (j.syncing == 0 || j.syncing > last) && (len(j.queue) == 0 || j.queue[0].seq > last)
	}
	if err := j.until(ctx, on); err != nil {
		return err
	}
	target := j.spool.Stats().Next
	if err := j.until(ctx, func() bool { return j.feed.past(target) }); err != nil {
		return err
	}
	if err := j.buffer.Flush(ctx); err != nil {
		return err
	}
	j.mu.Lock()
	condemned := j.condemned
	j.mu.Unlock()
	if err := j.until(ctx, func() bool { return j.buried >= condemned }); err != nil {
		return err
	}
	return j.untilTold(ctx)
}

// until waits for something to be so, while the journal works.
func (j *journal) until(ctx context.Context, so func() bool) error {
	for {
		j.mu.Lock()
		ok, changed, failure := so(), j.changed, j.failure
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
			return ErrWriterClosed
		}
	}
}

// untilTold waits until everybody was told who is to be told by now.
func (j *journal) untilTold(ctx context.Context) error {
	done := make(chan struct{})
	j.tells.Lock()
	if j.tells.over {
		j.tells.Unlock()
		return nil
	}
	j.tells.list = append(j.tells.list, told{tell: func(Outcome) { close(done) }})
	j.tells.Unlock()
	poke(j.tells.wake)
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctxerr.Of(ctx)
	case <-j.ctx.Done():
		return ErrWriterClosed
	}
}

// fail notes that nothing more is to be had of the spool.
func (j *journal) fail(err error) {
	err = fmt.Errorf("tsdb: the journal: %w", err)
	j.mu.Lock()
	first := j.failure == nil
	if first {
		j.failure = err
	}
	j.change()
	j.mu.Unlock()
	if first {
		j.watch.Journal(err) // unlocked, as a logger may ask for Stats
	}
}

// lastWait is how long close waits, once its context has ended, for requests that were broken off and functions of the
// caller that are still at work.
const lastWait = time.Second

// close takes no more points, delivers what it can while ctx lasts, and returns an error that matches ErrUndelivered where points
// stay behind. A second call returns what the first one does, and ends its delivery where its own context ends earlier.
func (j *journal) close(ctx context.Context) error {
	ctx, hurry := context.WithCancelCause(ctx)
	defer hurry(nil)
	j.mu.Lock()
	first := !j.closed
	if first {
		j.closed, j.hurry = true, hurry
	}
	j.change()
	j.mu.Unlock()
	if first {
		defer close(j.over)
		poke(j.wake)
		j.kept = j.end(ctx)
		return j.kept
	}
	select {
	case <-j.over:
	case <-ctx.Done():
		j.hurry(context.Cause(ctx))
		<-j.over
	}
	return j.kept
}

func (j *journal) end(ctx context.Context) error {
	err := j.drain(ctx)
	// What is still under way when ctx ends is broken off; what the service has answered by then is taken out of the journal.
	j.stop()
	poke(j.wake)
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
	j.tells.Lock()
	j.tells.over = true
	j.tells.Unlock()
	poke(j.tells.wake)
	done := make(chan struct{})
	go func() {
		j.workers.Wait()
		close(done)
	}()
	told := false
	select {
	case <-done:
		told = true
	case <-last.Done():
	}
	switch n := j.spool.Stats().Records; {
	case n > 0:
		err = errors.Join(fmt.Errorf("%w: %d", ErrUndelivered, n), err)
	case synced && told && ctx.Err() != nil && (errors.Is(err, context.Cause(ctx)) || err == ctx.Err()):
		err = nil // the time was over, but so was the work
	}
	return errors.Join(err, j.spool.Close())
}

// drain waits until everything has been delivered.
func (j *journal) drain(ctx context.Context) error {
	select {
	case <-j.synced:
	case <-ctx.Done():
		return ctxerr.Of(ctx)
	}
	return j.flush(ctx)
}
