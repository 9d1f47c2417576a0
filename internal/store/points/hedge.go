package points

import (
	"context"
	"sync"
	"time"

	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/reach"
)

// Options are a call's options for reads, with all defaults resolved.
type Options struct {
	Width int // largest number of concurrent requests
	Hedge Hedge
	Stale time.Duration // largest age of an answer from the cache; 0 means no cache
}

// Hedge says when a second request is sent for a slow read; see tsdb.Hedge. The zero hedge is off.
type Hedge struct {
	After    time.Duration
	MaxRatio float64
}

// On reports whether a second request may be sent.
func (h Hedge) On() bool { return h != Hedge{} }

// hedgeCredit is how many second requests a store can save up.
const hedgeCredit = 100

// HedgeBudget limits second requests to a share of the reads. The zero budget is empty.
type HedgeBudget struct {
	mu     sync.Mutex
	credit float64
}

// Earn adds the share of reads that are about to be made, if h is on. A call can always use all that it earns itself,
// even above the limit.
func (b *HedgeBudget) Earn(h Hedge, reads int) {
	if !h.On() {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	own := float64(reads) * h.MaxRatio
	b.credit = min(b.credit+own, max(own, hedgeCredit))
}

// spend reports whether a second request may be sent.
func (b *HedgeBudget) spend() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.credit < 1 {
		return false
	}
	b.credit--
	return true
}

// Once makes one read of a table, hedged if h is on.
func Once[R any](ctx context.Context, t *Table, h Hedge, read func(context.Context) (R, error)) (R, error) {
	if !h.On() {
		return read(ctx)
	}
	return hedged(ctx, h.After, &t.Hedges, read)
}

// hedged calls read, and a second time if the first call takes long and the budget allows it. The first call that
// succeeds gives the result, and the other is cancelled. Both have ended when hedged returns.
func hedged[R any](ctx context.Context, after time.Duration, budget *HedgeBudget, read func(context.Context) (R, error)) (R, error) {
	type answer struct {
		result R
		err    error
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(bt.ErrNotNeeded)
	answers := make(chan answer, 2)
	send := func() {
		result, err := read(ctx)
		answers <- answer{result, err}
	}
	timer := time.NewTimer(after)
	defer timer.Stop()
	go send()
	for running := 1; ; {
		select {
		case <-timer.C:
			if budget.spend() {
				reach.Point(reach.SecondRead)
				running++
				go send()
			}
		case a := <-answers:
			if running--; a.err != nil && running > 0 {
				continue
			}
			cancel(bt.ErrNotNeeded)
			for range running {
				<-answers
			}
			return a.result, a.err
		}
	}
}
