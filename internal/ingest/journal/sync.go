package journal

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/ingest/buffer"
	"github.com/tidemark-go/tidemark/internal/ingest/spool"
)

// syncLoop syncs waiting writes, group by group, and passes them on.
func (j *Journal) syncLoop() {
	defer close(j.synced)
	size := maxGroup
	for {
		group, records := j.nextGroup(size)
		if group == nil {
			return
		}
		first, err := j.spool.Append(j.ctx, records)
		switch {
		case err == nil:
			j.passOn(first, group)
			size = min(2*size, maxGroup)
		case errors.Is(err, spool.ErrFull) && len(group) > 1:
			j.putBack(group)
			size = bytesOf(records) / 2 // some of them may have room
		case errors.Is(err, spool.ErrFull):
			j.putBack(group)
			j.awaitRoom(group[0], records)
		case errors.Is(err, spool.ErrUnsure):
			j.answer(group, bt.Outcome{State: bt.Unknown, Err: err})
		default:
			if j.ctx.Err() != nil {
				err = buffer.ErrClosed
			}
			j.answer(group, bt.Outcome{State: bt.Rejected, Err: err})
		}
		j.mu.Lock()
		j.syncing = 0
		j.change()
		j.mu.Unlock()
	}
}

func bytesOf(records [][]byte) (n int) {
	for _, r := range records {
		n += len(r)
	}
	return n
}

// nextGroup waits for writes and takes a group of at most size bytes, but at least one write. It returns nil when the
// journal is closed and no write is left.
func (j *Journal) nextGroup(size int) (group []*Entry, records [][]byte) {
	for {
		j.mu.Lock()
		group = j.queue.take(size)
		for _, e := range group {
			records = append(records, e.record)
			j.syncing = min(cmp.Or(j.syncing, e.seq), e.seq)
		}
		closed := j.closed
		j.mu.Unlock()
		if group != nil || closed {
			return group, records
		}
		<-j.wakeSync
	}
}

// putBack puts a group back into the queue, because the journal has no room for it.
func (j *Journal) putBack(group []*Entry) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.queue.putBack(group)
}

// awaitRoom waits until the journal has room for a write that did not fit. Callers with noWait get buffer.ErrFull if
// their write is this one, or would wait behind it.
func (j *Journal) awaitRoom(e *Entry, record [][]byte) {
	ctx, cancel := context.WithCancel(j.ctx)
	defer cancel()
	j.mu.Lock()
	if j.queue.first() != e { // its caller withdrew it meanwhile
		j.mu.Unlock()
		return
	}
	var refused []*Entry
	if e.noWait {
		refused = j.queue.remove(func(other *Entry) bool { return other == e })
	} else {
		j.full, j.oversize, j.giveUp = true, e, cancel
		refused = j.queue.remove(func(e *Entry) bool { return e.noWait })
	}
	full := j.full
	j.mu.Unlock()
	j.answer(refused, bt.Outcome{State: bt.Rejected, Err: buffer.ErrFull})
	if !full {
		return
	}
	// If no room can come, because the spool failed or the writer was closed at once, the next Append reports that.
	_ = j.spool.Room(ctx, record)
	j.mu.Lock()
	j.full, j.oversize, j.giveUp = false, nil, nil
	j.mu.Unlock()
}

// passOn reports to callers that their writes are on disk, and passes the writes to the buffer.
func (j *Journal) passOn(first uint64, group []*Entry) {
	j.answer(group, bt.Outcome{State: bt.Journaled})
	oldest := j.spool.Stats().First
	j.mu.Lock()
	defer j.mu.Unlock()
	j.arrivals.add(first, time.Now(), oldest)
	for i, e := range group {
		j.shares.unsynced -= e.bytes
		e.seq, e.record = first+uint64(i), nil
		e.Item.Done = j.done
		j.feedDirect(e)
	}
}

// answer queues the outcome for the writes' callers. Writes that are not in the journal free their share of it.
func (j *Journal) answer(group []*Entry, o bt.Outcome) {
	if o.State != bt.Journaled {
		j.mu.Lock()
		for _, e := range group {
			j.shares.unsynced -= e.bytes
			if o.State == bt.Rejected {
				j.addToShare(e.Item.Tenant, -e.bytes)
			}
		}
		j.mu.Unlock()
	}
	j.callers.Lock()
	for _, e := range group {
		j.callers.queue = append(j.callers.queue, call{e.Caller, e.Item.Tenant, len(e.record), o})
	}
	j.callers.Unlock()
	wake(j.callers.wake)
}
