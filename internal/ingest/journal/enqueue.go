package journal

import (
	"context"
	"runtime"

	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/ctxerr"
	"github.com/tidemark-go/tidemark/internal/ingest/buffer"
)

// Enqueue adds a write to the next sync, and waits for room until ctx ends. With noWait it returns buffer.ErrFull
// instead of waiting. The write's Caller gets Journaled when its record is on disk, or the reason why it is not. If
// Enqueue returns an error, the write is not added and its Caller gets nothing.
func (j *Journal) Enqueue(ctx context.Context, e *Entry, noWait bool) error {
	record, err := j.opts.Codec.Encode(ctx, e)
	if err != nil {
		return err
	}
	e.record, e.noWait, e.bytes = record, noWait, int64(len(record))
	j.mu.Lock()
	shared := j.sharing.Add(e.Item.Tenant)
	for {
		switch {
		case j.closed:
			j.mu.Unlock()
			return buffer.ErrClosed
		case noWait && (j.full || !j.hasRoom(e.Item.Tenant, e.bytes)):
			j.mu.Unlock()
			return buffer.ErrFull
		case !j.hasRoom(e.Item.Tenant, e.bytes):
			j.awaitShare(ctx)
			if err := ctxerr.Of(ctx); err != nil {
				j.mu.Unlock()
				return err
			}
			continue
		case j.queue.hasRoom(e.Item.Tenant, len(record)):
			j.push(e)
			floods := shared && j.enqueued%buffer.YieldEvery == 0 && j.queue.floods(e.Item.Tenant)
			j.mu.Unlock()
			wake(j.wakeSync)
			if floods {
				runtime.Gosched()
			}
			return nil
		case noWait:
			j.mu.Unlock()
			return buffer.ErrFull
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

// push adds a write to the queue. The journal is locked.
func (j *Journal) push(e *Entry) {
	j.addToShare(e.Item.Tenant, e.bytes)
	j.shares.unsynced += e.bytes
	j.enqueued++
	e.seq = j.enqueued
	j.queue.push(e)
}

// outcomes is the Caller of EnqueueAndWait.
type outcomes chan bt.Outcome

func (c outcomes) Ended(o bt.Outcome) { c <- o }

// EnqueueAndWait is Enqueue for a caller that waits until the record is on disk. It sets the write's Caller.
func (j *Journal) EnqueueAndWait(ctx context.Context, e *Entry, noWait bool) bt.Outcome {
	ended := make(outcomes, 1)
	e.Caller = ended
	if err := j.Enqueue(ctx, e, noWait); err != nil {
		return bt.Outcome{State: bt.Rejected, Err: err}
	}
	select {
	case o := <-ended:
		return o
	case <-ctx.Done():
	}
	if j.withdraw(e) {
		return bt.Outcome{State: bt.Rejected, Err: ctxerr.Of(ctx)}
	}
	select {
	case o := <-ended:
		return o
	default:
		return bt.Outcome{State: bt.Unknown, Err: ctxerr.Of(ctx)} // its sync is running
	}
}

// withdraw removes a write from the queue if its sync has not begun.
func (j *Journal) withdraw(e *Entry) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.queue.remove(func(other *Entry) bool { return other == e })) == 0 {
		return false
	}
	if e == j.oversize {
		j.giveUp()
	}
	j.shares.unsynced -= e.bytes
	j.addToShare(e.Item.Tenant, -e.bytes)
	j.queue.free(e.Item.Tenant, len(e.record))
	e.record = nil
	j.change()
	return true
}
