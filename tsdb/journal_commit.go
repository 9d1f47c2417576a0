package tsdb

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/tidemark-go/tidemark/internal/ingest/spool"
)

// commit syncs what waits, group by group, and hands it on.
func (j *journal) commit() {
	defer close(j.synced)
	size := journalGroup
	for {
		group, records := j.group(size)
		if group == nil {
			return
		}
		first, err := j.spool.Append(j.ctx, records)
		switch {
		case err == nil:
			j.handOn(first, group)
			size = min(2*size, journalGroup)
		case errors.Is(err, spool.ErrFull) && len(group) > 1:
			j.putBack(group)
			size = bytesOf(records) / 2 // there may be room for some of them
		case errors.Is(err, spool.ErrFull):
			j.putBack(group)
			j.awaitRoom(group[0], records)
		case errors.Is(err, spool.ErrUnsure):
			j.answer(group, Outcome{State: Unknown, Err: err})
		default:
			if j.ctx.Err() != nil {
				err = ErrWriterClosed
			}
			j.answer(group, rejected(err))
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

// group waits for points and takes a group of them, of about that size. It returns nil when the journal is closed and none
// is left.
func (j *journal) group(most int) (group []*pending, records [][]byte) {
	for {
		j.mu.Lock()
		size := 0
		for i, p := range j.queue {
			if size += len(p.record); size > most && i > 0 {
				break
			}
			group, records = append(group, p), append(records, p.record)
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
		<-j.wake
	}
}

// putBack puts a group back for which the journal has no room.
func (j *journal) putBack(group []*pending) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.queue = append(slices.Clone(group), j.queue...)
}

// awaitRoom waits until the journal has room for a point that it has none for. Callers who do not wait are told so, if
// theirs is that point or would wait behind it.
func (j *journal) awaitRoom(p *pending, record [][]byte) {
	ctx, cancel := context.WithCancel(j.ctx)
	defer cancel()
	j.mu.Lock()
	if len(j.queue) == 0 || j.queue[0] != p { // its caller has gone meanwhile
		j.mu.Unlock()
		return
	}
	var tried []*pending
	if p.try {
		tried, j.queue = append(tried, p), j.queue[1:]
	} else {
		j.full, j.oversize, j.giveUp = true, p, cancel
		j.queue = slices.DeleteFunc(j.queue, func(p *pending) bool {
			if p.try {
				tried = append(tried, p)
			}
			return p.try
		})
	}
	full := j.full
	j.mu.Unlock()
	j.answer(tried, rejected(ErrBufferFull))
	if !full {
		return
	}
	// Where room is not to be had, because the spool failed or the writer is closed at once, the next Append says so.
	_ = j.spool.Room(ctx, record)
	j.mu.Lock()
	j.full, j.oversize, j.giveUp = false, nil, nil
	j.mu.Unlock()
}

// handOn tells callers that their points are on disk, and lets the points go on to the buffer.
func (j *journal) handOn(first uint64, group []*pending) {
	j.answer(group, Outcome{State: Journaled})
	j.mu.Lock()
	defer j.mu.Unlock()
	j.ages.note(first, time.Now())
	for i, p := range group {
		j.shares.unsynced -= p.bytes
		p.seq, p.record = first+uint64(i), nil
		p.item.Done = j.delivered
		j.feedDirect(p)
	}
}

// answer lets the callers of points be told. Points that are not in the journal give back their share.
func (j *journal) answer(group []*pending, o Outcome) {
	if o.State != Journaled {
		j.mu.Lock()
		for _, p := range group {
			j.shares.unsynced -= p.bytes
			if o.State == Rejected {
				j.hold(p.item.Tenant, -p.bytes)
			}
		}
		j.mu.Unlock()
	}
	j.tells.Lock()
	for _, p := range group {
		j.tells.list = append(j.tells.list, told{p.told, len(p.record), o})
	}
	j.tells.Unlock()
	poke(j.tells.wake)
}

// telling is what callers are to be told, off the path of the syncs.
type telling struct {
	sync.Mutex
	list []told
	wake chan struct{}
	over bool
}

type told struct {
	tell  func(Outcome)
	bytes int
	out   Outcome
}

func (j *journal) tell() {
	for {
		j.tells.Lock()
		list, over := j.tells.list, j.tells.over
		j.tells.list = nil
		j.tells.Unlock()
		if list == nil {
			if over {
				return
			}
			<-j.tells.wake
			continue
		}
		for _, t := range list {
			t.tell(t.out)
		}
		bytes := 0
		for _, t := range list {
			bytes += t.bytes
		}
		j.mu.Lock()
		j.queued -= bytes
		j.change()
		j.mu.Unlock()
	}
}
