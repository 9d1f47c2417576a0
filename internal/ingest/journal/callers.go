package journal

import (
	"context"
	"sync"

	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/ctxerr"
	"github.com/tidemark-go/tidemark/internal/ingest/buffer"
)

// callers are those who are to be told how the sync of their writes ended. One goroutine tells them, so that slow ones do
// not hold up the syncs.
type callers struct {
	sync.Mutex
	queue []call
	wake  chan struct{}
	over  bool // nobody comes any more
}

// call is one of them, with the bytes of its record, which count as queued until it is told.
type call struct {
	caller  Caller
	bytes   int
	outcome bt.Outcome
}

// callLoop tells callers.
func (j *Journal) callLoop() {
	for {
		j.callers.Lock()
		queue, over := j.callers.queue, j.callers.over
		j.callers.queue = nil
		j.callers.Unlock()
		if queue == nil {
			if over {
				return
			}
			<-j.callers.wake
			continue
		}
		bytes := 0
		for _, c := range queue {
			c.caller.Ended(c.outcome)
			bytes += c.bytes
		}
		j.mu.Lock()
		j.queued -= bytes
		j.change()
		j.mu.Unlock()
	}
}

// awaitCallers waits until everybody is told who is in the queue now.
func (j *Journal) awaitCallers(ctx context.Context) error {
	told := make(outcomes, 1)
	j.callers.Lock()
	if j.callers.over {
		j.callers.Unlock()
		return nil
	}
	j.callers.queue = append(j.callers.queue, call{caller: told})
	j.callers.Unlock()
	wake(j.callers.wake)
	select {
	case <-told:
		return nil
	case <-ctx.Done():
		return ctxerr.Of(ctx)
	case <-j.ctx.Done():
		return buffer.ErrClosed
	}
}
