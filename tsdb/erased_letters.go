package tsdb

import (
	"time"

	"github.com/tidemark-go/tidemark/internal/store/tenancy"
)

const (
	// scrubDelay is how long after a change of marks, or after points were dropped, the journal's file is written anew.
	scrubDelay = 5 * time.Second
	// scrubShare bounds how much of the time that takes.
	scrubShare = 20
)

// purgeOn drops the dead letters of erased tenants and entities, at the start and whenever marks have changed. It then has the
// journal's file written anew, so that it holds nothing of what is erased either.
func (j *journal) purgeOn(e *tenancy.Erasures) {
	changed := e.Watch()
	defer e.Unwatch(changed)
	e.Start()
	var scrub <-chan time.Time
	for {
		if m := e.Last(); m != nil && len(m.Tenants) > 0 && j.spool.Stats().Dead > 0 {
			j.purge(m, e)
		}
		select {
		case <-changed:
			scrub = time.After(scrubDelay)
		case <-j.wakeScrub:
			if scrub == nil {
				scrub = time.After(scrubDelay)
			}
		case <-scrub:
			scrub = nil
			begin := time.Now()
			_ = j.spool.Scrub(j.ctx) // where that fails, the journal does it when it is idle
			j.pause(scrubShare * time.Since(begin))
		case <-j.ctx.Done():
			return
		}
	}
}

// purge drops the dead letters of what is erased. Where that fails they stay until the next time: nobody delivers them.
func (j *journal) purge(m *tenancy.Marks, e *tenancy.Erasures) {
	const most = 100
	var ids []uint64
	left := map[string]int64{}
	drop := func() {
		n, _ := j.spool.Drop(j.ctx, ids...)
		j.erased.Add(uint64(n))
		if n > 0 {
			j.moved(left, nil)
			poke(j.wakeScrub)
		}
		ids = ids[:0]
		clear(left)
	}
	now := e.Clock()
	for d, err := range j.spool.Dead(j.ctx) {
		if err != nil {
			break
		}
		p, err := j.parse(d.Data)
		if err == nil && m.CoversWrite(p, p.generation, now) {
			ids = append(ids, d.ID)
			left[p.item.Tenant] += letterBytes(d.Data, d.Reason)
		}
		if len(ids) == most {
			drop()
		}
	}
	drop()
}
