package journal

import (
	"context"
	"errors"
	"slices"
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
		bytes := 0
		for i, e := range j.queue {
			if bytes += len(e.record); bytes > size && i > 0 {
				break
			}
			group, records = append(group, e), append(records, e.record)
		}
		clear(j.queue[:len(group)])
		j.queue = j.queue[len(group):]
		if group != nil {
			j.syncing = group[0].seq
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
	j.queue = append(slices.Clone(group), j.queue...)
}

// awaitRoom waits until the journal has room for a write that did not fit. Callers with noWait get buffer.ErrFull if
// their write is this one, or would wait behind it.
func (j *Journal) awaitRoom(e *Entry, record [][]byte) {
	ctx, cancel := context.WithCancel(j.ctx)
	defer cancel()
	j.mu.Lock()
	if len(j.queue) == 0 || j.queue[0] != e { // its caller withdrew it meanwhile
		j.mu.Unlock()
		return
	}
	var refused []*Entry
	if e.noWait {
		refused, j.queue = append(refused, e), j.queue[1:]
	} else {
		j.full, j.oversize, j.giveUp = true, e, cancel
		j.queue = slices.DeleteFunc(j.queue, func(e *Entry) bool {
			if e.noWait {
				refused = append(refused, e)
			}
			return e.noWait
		})
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
		j.callers.queue = append(j.callers.queue, call{e.Caller, len(e.record), o})
	}
	j.callers.Unlock()
	wake(j.callers.wake)
}
