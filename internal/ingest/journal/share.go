package journal

import (
	"context"
	"slices"
	"time"
)

// maxShare is how many times the free bytes of the journal one tenant's records and dead letters may take.
const maxShare = 7

// sharePause is how long a caller without room waits before it looks again: a block on the disk is freed some time
// after its records are done.
const sharePause = time.Second

// shares counts the bytes that each tenant takes of a journal. The journal's lock guards it.
type shares struct {
	held     map[string]int64 // by tenant: records that are on disk or will be written, and dead letters
	unsynced int64            // bytes of records that are not on disk yet
	counted  uint64           // records before this number were found by Open; each counts once it is read
	waiting  int              // callers that wait for room
}

// hasRoom reports whether the tenant's share of the journal has room for a record. A tenant that has used up its share
// does not block others, and a large record without room does not block small ones.
func (j *Journal) hasRoom(tenant string, size int64) bool {
	used, limit := j.spool.Used()
	free := limit - used - j.shares.unsynced
	if free >= limit {
		return true
	}
	return size <= free && j.shares.held[tenant]+size <= maxShare*(free-size)
}

// addToShare adds bytes to a tenant's share. They may be negative.
func (j *Journal) addToShare(tenant string, bytes int64) {
	if n := j.shares.held[tenant] + bytes; n > 0 {
		j.shares.held[tenant] = n
	} else {
		delete(j.shares.held, tenant)
	}
	if bytes < 0 && j.shares.waiting > 0 {
		j.change()
	}
}

// countDeadLetters counts the dead letters that Open finds.
func (j *Journal) countDeadLetters(ctx context.Context) error {
	for l, err := range j.DeadLetters(ctx) {
		if err != nil {
			return err
		}
		if l.Entry != nil {
			j.addToShare(l.Entry.Item.Tenant, l.bytes())
		}
	}
	return nil
}

// freedBy returns, by tenant, how many bytes the removal of dead letters frees. It reads the letters up to the last ID.
func (j *Journal) freedBy(ctx context.Context, ids []uint64, frees func(DeadLetter) int64) (map[string]int64, error) {
	freed := map[string]int64{}
	if len(ids) == 0 {
		return freed, nil
	}
	ids = slices.Sorted(slices.Values(ids))
	for l, err := range j.DeadLetters(ctx) {
		if err != nil {
			return nil, err
		}
		if _, wanted := slices.BinarySearch(ids, l.ID); wanted && l.Entry != nil {
			freed[l.Entry.Item.Tenant] += frees(l)
		}
		if l.ID >= ids[len(ids)-1] {
			break
		}
	}
	return freed, nil
}

// giveBack subtracts bytes from tenants' shares.
func (j *Journal) giveBack(freed map[string]int64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for tenant, bytes := range freed {
		j.addToShare(tenant, -bytes)
	}
}

// awaitShare waits until a caller may look for room again. The journal is locked before and after.
func (j *Journal) awaitShare(ctx context.Context) {
	changed := j.changed
	j.shares.waiting++
	j.mu.Unlock()
	timer := time.NewTimer(sharePause)
	defer timer.Stop()
	select {
	case <-changed:
	case <-timer.C:
	case <-ctx.Done():
	}
	j.mu.Lock()
	j.shares.waiting--
}
