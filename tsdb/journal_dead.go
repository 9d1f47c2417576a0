package tsdb

import (
	"errors"
	"strings"
	"time"

	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/ingest/buffer"
	"github.com/tidemark-go/tidemark/internal/ingest/spool"
)

// letter is a point that is to become a dead letter.
type letter struct {
	dead spool.Dead
	item *buffer.Item
	out  bt.Outcome
}

// buryPause is how long the journal waits before it tries again to write dead letters, where the disk has no room for them.
const buryPause = time.Second

// delivered takes a point out of the journal, once it is stored or refused. Anything else was said because the writer is
// closed: it stays for the next one.
func (j *journal) delivered(it *buffer.Item, out bt.Outcome) {
	p := it.Work.(*pending)
	switch {
	case out.State == bt.Stored, p.event != nil && p.event.done:
		j.spool.Done(p.seq)
		j.gone(p)
	case errors.Is(out.Err, ErrWriterClosed):
	case errors.Is(out.Err, ErrErased):
		j.erased.Add(1)
		j.spool.Done(p.seq)
		j.gone(p)
		poke(j.wakeScrub)
	default:
		j.condemn(p.seq, it, out)
	}
}

// condemn queues a point to become a dead letter, and waits while many do.
func (j *journal) condemn(seq uint64, it *buffer.Item, out bt.Outcome) {
	const most = 1000
	j.mu.Lock()
	defer j.mu.Unlock()
	for j.condemned-j.buried >= most && j.ctx.Err() == nil {
		changed := j.changed
		j.mu.Unlock()
		select {
		case <-changed:
		case <-j.ctx.Done():
		}
		j.mu.Lock()
	}
	j.condemned++
	j.letters = append(j.letters, letter{spool.Dead{Seq: seq, Reason: reason(out), Attempts: out.Attempts}, it, out})
	poke(j.wakeBury)
}

// reason is why a point is a dead letter, in the words of its outcome.
func reason(out bt.Outcome) string {
	const most = 4 << 10
	text := State(out.State).String()
	if out.Err != nil {
		text += ": " + out.Err.Error()
	}
	return strings.ToValidUTF8(text[:min(len(text), most)], "")
}

// bury makes dead letters of what the service refused.
func (j *journal) bury() {
	for {
		j.mu.Lock()
		letters := j.letters
		j.letters = nil
		j.mu.Unlock()
		if len(letters) == 0 {
			select {
			case <-j.wakeBury:
				continue
			case <-j.ctx.Done():
				return
			}
		}
		if j.buryAll(letters) {
			for _, l := range letters {
				if l.item != nil {
					j.failed(l.item, l.out)
				}
			}
		}
		j.mu.Lock()
		for _, l := range letters {
			if l.item != nil { // else nobody knows whose it is
				j.hold(l.item.Tenant, int64(len(l.dead.Reason)))
			}
		}
		j.buried += uint64(len(letters))
		j.change()
		j.mu.Unlock()
	}
}

// buryAll writes letters, again and again while the disk has no room. Where it reports false the points stay in the
// journal, and the next writer finds out again.
func (j *journal) buryAll(letters []letter) bool {
	dead := make([]spool.Dead, len(letters))
	for i, l := range letters {
		dead[i] = l.dead
	}
	for {
		err := j.spool.Bury(j.ctx, dead...)
		switch {
		case err == nil:
			return true
		case j.ctx.Err() != nil, errors.Is(err, spool.ErrInvalid):
			return false
		}
		if _, err := j.spool.Read(j.ctx, j.spool.Stats().Next, 1, 1); err != nil {
			j.fail(err)
			return false
		}
		j.pause(buryPause)
	}
}
