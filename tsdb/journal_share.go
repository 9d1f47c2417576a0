package tsdb

import (
	"context"
	"slices"
	"time"
)

// journalShare is how many times the free bytes of the journal one tenant's points and dead letters may take, as in the buffer.
const journalShare = 7

// roomPause is how long a caller without room waits before it looks again: blocks on disk give space back some time after
// their points are delivered.
const roomPause = time.Second

// shares are the bytes that tenants hold of a journal. The journal's lock guards them.
type shares struct {
	held     map[string]int64 // by tenant: points on disk or on their way to it, and dead letters
	unsynced int64            // of points on their way to the disk
	counted  uint64           // points before this number, which were there at the opening, count once they are read
	waiting  int              // callers that wait for room
}

// fits reports whether the tenant's share of the journal has room for a point. A tenant whose share is used up does not keep
// out others, and a large point for which there is no room does not keep out small ones.
func (j *journal) fits(tenant string, size int64) bool {
	used, limit := j.spool.Used()
	free := limit - used - j.shares.unsynced
	if free >= limit {
		return true
	}
	return size <= free && j.shares.held[tenant]+size <= journalShare*(free-size)
}

// hold counts bytes for a tenant, or takes them off where they are negative.
func (j *journal) hold(tenant string, size int64) {
	if n := j.shares.held[tenant] + size; n > 0 {
		j.shares.held[tenant] = n
	} else {
		delete(j.shares.held, tenant)
	}
	if size < 0 && j.shares.waiting > 0 {
		j.change()
	}
}

// gone takes off the bytes of a point that has left the journal.
func (j *journal) gone(p *pending) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.hold(p.item.Tenant, -p.bytes)
}

// countLetters counts the dead letters that are there at the opening.
func (j *journal) countLetters(ctx context.Context) error {
	for d, err := range j.spool.Dead(ctx) {
		if err != nil {
			return err
		}
		if p, err := j.parse(d.Data); err == nil {
			j.hold(p.item.Tenant, letterBytes(d.Data, d.Reason))
		}
	}
	return nil
}

func letterBytes(record []byte, reason string) int64 { return int64(len(record) + len(reason)) }

// letterShares returns what dead letters take of whose share, and their records: those of the IDs that there are. It reads the
// letters up to the last of them.
func (j *journal) letterShares(ctx context.Context, ids []uint64) (letters, records map[string]int64, err error) {
	letters, records = map[string]int64{}, map[string]int64{}
	if len(ids) == 0 {
		return letters, records, nil
	}
	last := slices.Max(ids)
	wanted := make(map[uint64]bool, len(ids))
	for _, id := range ids {
		wanted[id] = true
	}
	for d, err := range j.spool.Dead(ctx) {
		if err != nil {
			return nil, nil, err
		}
		if p, err := j.parse(d.Data); err == nil && wanted[d.ID] {
			letters[p.item.Tenant] += letterBytes(d.Data, d.Reason)
			records[p.item.Tenant] += int64(len(d.Data))
		}
		if d.ID >= last {
			break
		}
	}
	return letters, records, nil
}

// moved counts what has left the dead letters, and what came back into the journal; nil is nothing.
func (j *journal) moved(left, back map[string]int64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for tenant, size := range left {
		j.hold(tenant, back[tenant]-size)
	}
}

// awaitShare waits until a caller may look for room again. The journal is locked before and after.
func (j *journal) awaitShare(ctx context.Context) {
	changed := j.changed
	j.shares.waiting++
	j.mu.Unlock()
	timer := time.NewTimer(roomPause)
	defer timer.Stop()
	select {
	case <-changed:
	case <-timer.C:
	case <-ctx.Done():
	}
	j.mu.Lock()
	j.shares.waiting--
}
