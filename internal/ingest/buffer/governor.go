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
	// While the service is down, one request at a time probes it. The first probe goes after 25 ms; the interval then
	// grows by half each time, up to 5 s. Each interval is randomised by half in both directions.
	firstProbe   = 25 * time.Millisecond
	longestProbe = 5 * time.Second

	// Each tenant has a budget for repeats. A request that is served adds a fifth to it, so once the budget is used up,
	// repeats are at most a fifth of all requests. One repeat a second is always allowed, so no item stays forever;
	// such repeats of all tenants share an eighth of the slots.
	retryBudget = 20
	retryRatio  = 0.2
	retryPace   = time.Second

	// An item that was refused for now, in a request that was served, waits 25 ms at first and up to 2 s later.
	firstRetry   = 25 * time.Millisecond
	longestRetry = 2 * time.Second

	// firstSlots is the limit of batches in flight before any attempt has ended.
	firstSlots = 4
	// The service counts as crowded if an attempt takes slowdown times longer than usual, and at least crowdedFrom.
	slowdown    = 3
	crowdedFrom = 50 * time.Millisecond
	// longestWait bounds the pause that the service can ask for: one request a minute does not harm it.
	longestWait = time.Minute
)

// size is a class of batches whose durations are compared with each other, because a larger batch takes longer anyway.
// It is the logarithm of the bytes in KiB; batches of items that go alone have their own classes.
type size int

const sizes = 2 * 16

func sizeOf(bytes int, alone bool) size {
	s := size(min(bits.Len(uint(bytes)>>10), sizes/2-1))
	if alone {
		s += sizes / 2
	}
	return s
}

// governor decides how many batches may be in flight, and when. Create it with newGovernor.
type governor struct {
	limit    float64
	maxLimit float64
	usual    [sizes]time.Duration // usual duration of an attempt, by batch size; 0 means not known
	best     [sizes]pace          // the fastest attempts, by batch size
	lowered  time.Time            // when limit was lowered; attempts that began before do not count

	down       error // why the service counts as down; nil if it is up
	failed     time.Time
	until      time.Time // nothing is sent before this time
	askedUntil time.Time // the part of until that the service asked for; the rest ends when an attempt succeeds
	backoff    *backoff.ExponentialBackOff
	pacer      pacer // of Options.FlowControl
}

func newGovernor(inFlight int) governor {
	return governor{
		limit:    float64(min(firstSlots, inFlight)),
		maxLimit: float64(inFlight),
		backoff:  exponential(firstProbe, longestProbe),
	}
}

func exponential(first, longest time.Duration) *backoff.ExponentialBackOff {
	return backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(first),
		backoff.WithMaxInterval(longest),
		backoff.WithMaxElapsedTime(0), // the item's own deadline is the bound
	)
}

// slots returns how many batches may be in flight.
func (g *governor) slots() int {
	if g.down != nil {
		return 1
	}
	return int(g.limit)
}

// ready returns when the next batch may be sent. A time in the past means now.
func (g *governor) ready() time.Time { return later(g.until, g.pacer.until()) }

// note learns from an attempt at a batch of the given size. busy means that one of its tenants used all slots that it
// may use when the attempt ended.
func (g *governor) note(begin, now time.Time, of size, r Report, busy bool) {
	if r.Limit.Factor > 0 {
		g.pacer.advise(now, r.Limit)
	}
	if r.Wait > 0 {
		g.askedUntil = later(g.askedUntil, now.Add(min(r.Wait, longestWait)))
		g.until = later(g.until, g.askedUntil)
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
	g.down, g.until = nil, g.askedUntil
	g.backoff.Reset()
	if r.Overload {
		g.lower(begin, now, 0.7)
		return
	}
	g.learn(begin, now, of, busy)
}

var errDown = errors.New("the service does not answer")

// learn adapts the limit to how long an attempt took. It raises the limit while attempts are nearly as fast as the
// fastest ones, and lowers it down to firstSlots when they mostly wait behind each other: more of them would not store
// more then. It lowers the limit further when the service is crowded.
func (g *governor) learn(begin, now time.Time, of size, busy bool) {
	took, usual := now.Sub(begin), g.usual[of]
	if usual == 0 {
		usual = took
	}
	if took > crowdedFrom && took > slowdown*usual {
		g.lower(begin, now, 0.9)
	} else if best := g.best[of].note(took, now); busy && took < best*3/2 {
		g.limit = min(g.maxLimit, g.limit+1/g.limit)
	} else if took > 3*best && g.limit > firstSlots {
		g.limit = max(firstSlots, g.limit-1/g.limit)
	}
	// The usual duration rises slowly, so that overload does not become usual, and falls quickly.
	if took < usual {
		usual -= (usual - took) / 4
	} else {
		usual += (min(took, slowdown*usual) - usual) / 64
	}
	g.usual[of] = usual
}

// pace is the shortest duration of an attempt. What is old counts less: it grows by a hundredth each second, so that
// the buffer adapts to a service that became slower.
type pace struct {
	took time.Duration
	at   time.Time
}

// note takes one more attempt into account and returns the pace.
func (p *pace) note(took time.Duration, now time.Time) time.Duration {
	old := p.took + time.Duration(float64(p.took)*now.Sub(p.at).Seconds()/100)
	if p.took == 0 || took < old {
		old = took
	}
	p.took, p.at = old, now
	return old
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

// timeoutOutcome returns the outcome of an item whose deadline has passed.
func (q *Buffer) timeoutOutcome(it *Item) bt.Outcome {
	cause := ErrTimeout
	if q.gov.down != nil {
		cause = errors.Join(ErrTimeout, q.gov.down)
	}
	return finalOutcome(it, cause)
}

// abandonedOutcome returns the outcome of an item that Close gives up.
func (q *Buffer) abandonedOutcome(it *Item) bt.Outcome { return finalOutcome(it, context.Cause(q.ctx)) }

func finalOutcome(it *Item, cause error) bt.Outcome {
	out := it.Track.Outcome()
	if out.Attempts == 0 || out.Err == nil {
		out.Err = cause
	} else if !errors.Is(out.Err, cause) {
		out.Err = &finalError{cause, out.Err}
	}
	return out
}

// finalError says why an item was given up, and the error of its last attempt.
type finalError struct{ why, last error }

func (e *finalError) Error() string   { return e.why.Error() + "; the last attempt: " + e.last.Error() }
func (e *finalError) Unwrap() []error { return []error{e.why, e.last} }
