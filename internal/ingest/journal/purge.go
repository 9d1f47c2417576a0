package journal

import "time"

const (
	// scrubDelay is how long the journal waits after an erasure before it rewrites its file.
	scrubDelay = 5 * time.Second
	// After a rewrite the journal waits scrubPause times as long as the rewrite took before it begins another.
	scrubPause = 20
	// maxDrop bounds how many dead letters one step drops.
	maxDrop = 100
)

// purgeLoop drops erased dead letters, at the start and whenever more may be erased. It then has the journal's file
// rewritten, so that the file holds no erased data.
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
			_ = j.spool.Scrub(j.ctx) // if it fails, the spool tries again when it is idle
			j.pause(scrubPause * time.Since(begin))
		case <-j.ctx.Done():
			return
		}
	}
}

// purge drops the erased dead letters. If it fails, they stay until the next time. They are never delivered.
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
