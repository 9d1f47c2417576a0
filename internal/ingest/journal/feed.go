package journal

import (
	"errors"
	"time"

	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/ingest/spool"
)

const (
	// feedBytes bounds the bytes of records that one read takes from the disk.
	feedBytes = 1 << 20
	// feedPause is how long the feeder waits, after the buffer freed some room, for more room to become free.
	feedPause = 5 * time.Millisecond
)

// feed tracks which records of the journal the buffer has. A synced write goes directly from memory to the buffer while
// the buffer has room for its tenant. If it has none, the tenant falls behind: its later records are read from the
// disk, in their order, while records of other tenants go on.
type feed struct {
	frontier uint64            // all records before it are in the buffer, or belong to tenants that fell behind
	behind   map[string]uint64 // by tenant, the first sequence number that is not in the buffer
	stuck    map[string]bool   // tenants behind, with no room in the buffer
}

func newFeed(first uint64) feed {
	return feed{frontier: first, behind: map[string]uint64{}, stuck: map[string]bool{}}
}

// past reports whether all records before target are in the buffer or have ended.
func (f *feed) past(target uint64) bool {
	if f.frontier < target {
		return false
	}
	for _, seq := range f.behind {
		if seq < target {
			return false
		}
	}
	return true
}

// feedDirect passes a newly synced write to the buffer, if everything before it has gone. The journal is locked.
func (j *Journal) feedDirect(e *Entry) {
	if e.seq != j.feed.frontier {
		wake(j.wakeFeed) // the feeder has not reached this record yet
		return
	}
	j.feedNext(e)
}

// feedNext passes the write at the frontier to the buffer, or lets its tenant fall behind.
func (j *Journal) feedNext(e *Entry) {
	f := &j.feed
	f.frontier = e.seq + 1
	if _, behind := f.behind[e.Item.Tenant]; behind {
		return
	}
	if err := j.buffer.TryEnqueue(&e.Item); err != nil {
		f.behind[e.Item.Tenant] = e.seq
		f.stuck[e.Item.Tenant] = true
		wake(j.wakeFeed)
	}
}

// feedLoop reads from the disk the records that did not go to the buffer directly.
func (j *Journal) feedLoop() {
	for j.ctx.Err() == nil {
		j.mu.Lock()
		from, ok := j.nextFeed()
		stuck, failed := len(j.feed.stuck) > 0, j.failure != nil
		j.mu.Unlock()
		if failed {
			return
		}
		if ok {
			j.feedFrom(from)
			continue
		}
		var freed <-chan struct{}
		if stuck {
			freed = j.freed
		}
		select {
		case <-j.wakeFeed:
		case <-freed:
			j.pause(feedPause)
			j.mu.Lock()
			clear(j.feed.stuck)
			j.mu.Unlock()
		case <-j.ctx.Done():
		}
	}
}

// nextFeed returns from where to read, if there is something to read.
func (j *Journal) nextFeed() (from uint64, ok bool) {
	f := &j.feed
	if next := j.spool.Stats().Next; f.frontier < next {
		return f.frontier, true
	}
	for tenant, seq := range f.behind {
		if !f.stuck[tenant] && (!ok || seq < from) {
			from, ok = seq, true
		}
	}
	return from, ok
}

// feedFrom reads some records and passes to the buffer those that fit.
func (j *Journal) feedFrom(from uint64) {
	next := j.spool.Stats().Next
	records, err := j.spool.Read(j.ctx, from, j.opts.ReadRecords, feedBytes)
	if err != nil {
		if j.ctx.Err() == nil {
			j.fail(err)
		}
		return
	}
	entries := make([]*Entry, len(records))
	for i, r := range records {
		entries[i] = j.decode(r)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	end := next // if nothing is left to read before it
	if len(records) > 0 {
		end = records[len(records)-1].Seq + 1
	}
	for i, e := range entries {
		seq := records[i].Seq
		switch {
		case e == nil: // it becomes a dead letter
		case seq >= j.feed.frontier:
			if seq < j.shares.counted {
				j.addToShare(e.Item.Tenant, e.bytes)
			}
			j.feedNext(e)
		default:
			j.catchUp(e, from)
		}
	}
	f := &j.feed
	f.frontier = max(f.frontier, end)
	for tenant, seq := range f.behind {
		if f.stuck[tenant] || seq < from {
			continue
		}
		if f.behind[tenant] = max(seq, end); f.behind[tenant] >= f.frontier {
			delete(f.behind, tenant)
		}
	}
	j.change()
}

// catchUp passes on a write of a tenant that fell behind. It does so only if the read began at or before the tenant's
// first missing record.
func (j *Journal) catchUp(e *Entry, from uint64) {
	f := &j.feed
	tenant := e.Item.Tenant
	seq, behind := f.behind[tenant]
	if !behind || seq < from || e.seq < seq || f.stuck[tenant] {
		return
	}
	if err := j.buffer.TryEnqueue(&e.Item); err != nil {
		f.behind[tenant] = e.seq
		f.stuck[tenant] = true
		return
	}
	f.behind[tenant] = e.seq + 1
}

// errUnreadable is the reason of a dead letter whose record cannot be decoded.
var errUnreadable = errors.New("tsdb: the journal holds a record that is not a point or an event")

// decode returns the write of a record, or nil if the record cannot be decoded; it then becomes a dead letter.
func (j *Journal) decode(r spool.Record) *Entry {
	e, err := j.opts.Codec.Decode(r.Data)
	if err != nil {
		j.reject(r.Seq, nil, bt.Outcome{State: bt.Rejected, Err: errors.Join(errUnreadable, err)})
		return nil
	}
	e.seq, e.bytes = r.Seq, int64(len(r.Data))
	e.Item.Done = j.done
	return e
}
