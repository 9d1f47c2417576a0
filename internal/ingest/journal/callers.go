package journal

import (
	"context"
	"sync"

	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/ctxerr"
	"github.com/tidemark-go/tidemark/internal/ingest/buffer"
)

// callers are the callers that wait to learn whether their writes were synced. One goroutine calls them, so that slow
// ones do not delay the syncs.
type callers struct {
	sync.Mutex
	queue  []call
	wake   chan struct{}
	closed bool // no more callers will come
}

// call is one caller, with the bytes of its record. They count as queued until the caller was called.
type call struct {
	caller  Caller
	tenant  string
	bytes   int
	outcome bt.Outcome
}

// callLoop calls the callers.
func (j *Journal) callLoop() {
	for {
		j.callers.Lock()
		queue, over := j.callers.queue, j.callers.closed
		j.callers.queue = nil
		j.callers.Unlock()
		if queue == nil {
			if over {
				return
			}
			<-j.callers.wake
			continue
		}
		called := map[string]int{}
		for _, c := range queue {
			c.caller.Ended(c.outcome)
			if c.bytes > 0 {
				called[c.tenant] += c.bytes
			}
		}
		j.mu.Lock()
		for tenant, bytes := range called {
			j.queue.free(tenant, bytes)
		}
		j.change()
		j.mu.Unlock()
	}
}

// awaitCallers waits until all callers that are in the queue now were called.
func (j *Journal) awaitCallers(ctx context.Context) error {
	done := make(outcomes, 1)
	j.callers.Lock()
	if j.callers.closed {
		j.callers.Unlock()
		return nil
	}
	j.callers.queue = append(j.callers.queue, call{caller: done})
	j.callers.Unlock()
	wake(j.callers.wake)
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctxerr.Of(ctx)
	case <-j.ctx.Done():
		return buffer.ErrClosed
	}
}
