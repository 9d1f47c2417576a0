package buffer

import (
	"context"
	"errors"
	"math/bits"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/tidemark-go/tidemark/internal/bt"
)

const (
	// While the service is down, one request at a time asks whether it is back, after 25 ms at first, then after half as
	// long again each time up to 5 s, each spread by half to either side.
	firstProbe   = 25 * time.Millisecond
	longestProbe = 5 * time.Second

	// A tenant's repeated requests are paid from a budget that each of its requests that is served fills by a fifth, so that
	// repeats are at most a fifth of all once it is used up. One a second is always allowed, so that nothing stays for ever;
	// those of all tenants share an eighth of the slots.
	retryBudget = 20
	retryRatio  = 0.2
	retryPace   = time.Second

	// Items that were refused for now, in a request that was served, wait 25 ms at first and 2 s at last.
	firstRetry   = 25 * time.Millisecond
	longestRetry = 2 * time.Second

	// firstSlots is how many batches are in flight before anything is known of the service.
	firstSlots = 4
	// slowdown is how many times slower than usual an attempt is where the service counts as crowded, and crowdedFrom the
	// least that an attempt then takes.
	slowdown    = 3
	crowdedFrom = 50 * time.Millisecond
	// longestWait bounds how long the service may ask to be left alone: a request a minute does not harm it.
	longestWait = time.Minute
)

// size is what batches are compared by: how long an attempt takes is no news where the batch is larger than others. It is
// the logarithm of their bytes in KiB, apart for batches whose items go alone.
type size int

const sizes = 2 * 16

func sizeOf(bytes int, alone bool) size {
	s := size(min(bits.Len(uint(bytes)>>10), sizes/2-1))
	if alone {
		s += sizes / 2
	}
	return s
}

// governor decides how many batches may be in flight, and when. Its zero value is not ready.
type governor struct {
	limit   float64
	most    float64
	usual   [sizes]time.Duration // that an attempt at a batch takes, by its size; 0 for not known
	lowered time.Time            // when limit was lowered; attempts from before say nothing new

	down    error // why the service is taken for down; nil where it is not
	failed  time.Time
	until   time.Time // before which nothing is sent
	asked   time.Time // how much of that the service asked for; the rest ends when an attempt succeeds
	backoff *backoff.ExponentialBackOff
}

func newGovernor(inFlight int) governor {
	return governor{
		limit:   float64(min(firstSlots, inFlight)),
		most:    float64(inFlight),
		backoff: exponential(firstProbe, longestProbe),
	}
}

func exponential(first, longest time.Duration) *backoff.ExponentialBackOff {
	return backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(first),
		backoff.WithMaxInterval(longest),
		backoff.WithMaxElapsedTime(0), // an item's own time is the bound
	)
}

// slots is how many batches may be in flight.
func (g *governor) slots() int {
	if g.down != nil {
		return 1
	}
	return int(g.limit)
}

// note learns from an attempt at a batch of that size. Busy says that all slots were in use when it ended.
func (g *governor) note(begin, now time.Time, of size, r Report, busy bool) {
	if r.Wait > 0 {
		g.asked = later(g.asked, now.Add(min(r.Wait, longestWait)))
		g.until = later(g.until, g.asked)
	}
	if r.Down {
		g.lower(begin, now, 0.7)
		if begin.After(g.failed) || g.down == nil {
			g.failed = now
			g.until = later(g.until, now.Add(g.backoff.NextBackOff()))
		}
		g.down = r.Err
		if g.down == nil {
			g.down = errDown
		}
		return
	}
	g.down, g.until = nil, g.asked
	g.backoff.Reset()
	if r.Overload {
		g.lower(begin, now, 0.7)
		return
	}
	g.learn(begin, now, of, busy)
}

var errDown = errors.New("the service does not answer")

// learn adapts to how long an attempt took: more in flight while that does not make attempts slower, less where it does.
func (g *governor) learn(begin, now time.Time, of size, busy bool) {
	took, usual := now.Sub(begin), g.usual[of]
	if usual == 0 {
		usual = took
	}
	if took > crowdedFrom && took > slowdown*usual {
		g.lower(begin, now, 0.9)
	} else if busy {
		g.limit = min(g.most, g.limit+1/g.limit)
	}
	// What is usual follows slowly upwards, so that a crowd does not become usual by itself, and fast downwards.
	if took < usual {
		usual -= (usual - took) / 4
	} else {
		usual += (min(took, slowdown*usual) - usual) / 64
	}
	g.usual[of] = usual
}

func (g *governor) lower(begin, now time.Time, factor float64) {
	if begin.Before(g.lowered) {
		return
	}
	g.lowered = now
	g.limit = max(1, g.limit*factor)
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// tooLate is the outcome of an item whose time is over, and left that of one that is still there when the buffer ends.
func (q *Buffer) tooLate(it *Item) bt.Outcome {
	cause := ErrTimeout
	if q.gov.down != nil {
		cause = errors.Join(ErrTimeout, q.gov.down)
	}
	return over(it, cause)
}

func (q *Buffer) left(it *Item) bt.Outcome { return over(it, context.Cause(q.ctx)) }

func over(it *Item, cause error) bt.Outcome {
	out := it.Track.Outcome()
	if out.Attempts == 0 || out.Err == nil {
		out.Err = cause
	} else if !errors.Is(out.Err, cause) {
		out.Err = &overError{cause, out.Err}
	}
	return out
}

// overError is why an item was given up, and what its last attempt said.
type overError struct{ why, last error }

func (e *overError) Error() string   { return e.why.Error() + "; the last attempt: " + e.last.Error() }
func (e *overError) Unwrap() []error { return []error{e.why, e.last} }
