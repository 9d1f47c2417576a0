package journal

import "time"

const (
	// scrubDelay is how long the journal waits before it writes its file anew, after something was erased.
	scrubDelay = 5 * time.Second
	// scrubPause is how many times as long as that takes it waits before it does it again.
	scrubPause = 20
	// maxDrop is how many dead letters are dropped at once.
	maxDrop = 100
)

// purgeLoop drops dead letters that are erased, at the start and whenever more is erased. It then has the journal's file written
// anew, so that nothing erased is left in it.
func (j *Journal) purgeLoop() {
	changed, stop := j.opts.Erasures.Watch()
	defer stop()
	var scrub <-chan time.Time
	for {
		if erased := j.opts.Erasures.Filter(); erased != nil && j.spool.Stats().Dead > 0 {
			j.purge(erased)
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
			_ = j.spool.Scrub(j.ctx) // if it fails, the journal does it when it is idle
			j.pause(scrubPause * time.Since(begin))
		case <-j.ctx.Done():
			return
		}
	}
}

// purge drops the dead letters that are erased. If it fails they stay until the next time. They are never delivered.
func (j *Journal) purge(erased func(*Entry) bool) {
	var ids []uint64
	freed := map[string]int64{}
	drop := func() {
		n, _ := j.spool.Drop(j.ctx, ids...)
		j.erased.Add(uint64(n))
		if n > 0 {
			j.giveBack(freed)
			wake(j.wakeScrub)
		}
		ids = ids[:0]
		clear(freed)
	}
	for l, err := range j.DeadLetters(j.ctx) {
		if err != nil {
			break
		}
		if l.Entry != nil && erased(l.Entry) {
			ids = append(ids, l.ID)
			freed[l.Entry.Item.Tenant] += l.bytes()
		}
		if len(ids) == maxDrop {
			drop()
		}
	}
	drop()
}
