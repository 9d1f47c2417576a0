package tsdb

import (
	"errors"
	"time"

	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/ingest/spool"
)

const (
	// feedRecords and feedBytes are how much the feeder reads at once, at most.
	feedRecords = 1000
	feedBytes   = 1 << 20
	// feedPause is how long the feeder lets room gather after some was given back.
	feedPause = 5 * time.Millisecond
)

// feed is how far the points of the journal have gone on to the buffer. A point goes on as soon as it is synced, from
// memory, while the buffer has room for its tenant. A tenant for which it has none is left behind: its points are read from
// the disk later, in their order, while those of others go on.
type feed struct {
	frontier uint64            // all before are in the buffer, or of tenants that were left behind
	behind   map[string]uint64 // by tenant, the first sequence number that is not in the buffer
	stuck    map[string]bool   // tenants behind for which the buffer has no room
}

func newFeed(first uint64) feed {
	return feed{frontier: first, behind: map[string]uint64{}, stuck: map[string]bool{}}
}

// past reports whether all points before target are in the buffer or further.
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

// feedDirect lets a point that was just synced go on, where everything before it has. The journal is locked.
func (j *journal) feedDirect(p *pending) {
	if p.seq != j.feed.frontier {
		poke(j.wakeFeed) // the feeder is still on its way here
		return
	}
	j.feedNext(p)
}

// feedNext lets the point at the frontier go on, or leaves its tenant behind.
func (j *journal) feedNext(p *pending) {
	f := &j.feed
	f.frontier = p.seq + 1
	if _, behind := f.behind[p.item.Tenant]; behind {
		return
	}
	if err := j.buffer.TryEnqueue(&p.item); err != nil {
		f.behind[p.item.Tenant] = p.seq
		f.stuck[p.item.Tenant] = true
		poke(j.wakeFeed)
	}
}

// feedOn is the feeder: it reads from the disk what did not go on directly.
func (j *journal) feedOn() {
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

// pause lets some time pass, while the journal is open.
func (j *journal) pause(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-j.ctx.Done():
	}
}

// nextFeed returns where there is something to read.
func (j *journal) nextFeed() (from uint64, ok bool) {
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

// feedFrom reads some points of the journal and lets go on what can.
func (j *journal) feedFrom(from uint64) {
	next := j.spool.Stats().Next
	records, err := j.spool.Read(j.ctx, from, j.atOnce, feedBytes)
	if err != nil {
		if j.ctx.Err() == nil {
			j.fail(err)
		}
		return
	}
	points := make([]*pending, len(records))
	for i, r := range records {
		points[i] = j.pending(r)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	end := next // where nothing is left to read before it
	if len(records) > 0 {
		end = records[len(records)-1].Seq + 1
	}
	for i, p := range points {
		if seq := records[i].Seq; p != nil && seq < j.shares.counted && seq >= j.feed.frontier {
			j.hold(p.item.Tenant, p.bytes)
		}
		switch seq := records[i].Seq; {
		case p == nil: // condemned
		case seq >= j.feed.frontier:
			j.feedNext(p)
		default:
			j.catchUp(p, from)
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

// catchUp lets a point go on whose tenant was left behind, where what was read starts early enough to hold all that the
// tenant was left behind with.
func (j *journal) catchUp(p *pending, from uint64) {
	f := &j.feed
	tenant := p.item.Tenant
	seq, behind := f.behind[tenant]
	if !behind || seq < from || p.seq < seq || f.stuck[tenant] {
		return
	}
	if err := j.buffer.TryEnqueue(&p.item); err != nil {
		f.behind[tenant] = p.seq
		f.stuck[tenant] = true
		return
	}
	f.behind[tenant] = p.seq + 1
}

// pending makes a point of a record; nil where that cannot be done, and the record becomes a dead letter.
func (j *journal) pending(r spool.Record) *pending {
	p, err := j.parse(r.Data)
	if err != nil {
		j.condemn(r.Seq, nil, bt.Outcome{State: bt.Rejected, Err: errors.Join(errUnreadable, err)})
		return nil
	}
	p.seq, p.bytes = r.Seq, int64(len(r.Data))
	p.item.Done = j.delivered
	return p
}

var errUnreadable = errors.New("tsdb: the journal holds a record that is no point")
