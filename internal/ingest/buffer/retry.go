package buffer

import (
	"cmp"
	"container/heap"
	"slices"
	"strings"
	"time"

	"github.com/tidemark-go/tidemark/internal/reach"
)

// group holds items that wait together for their next attempt.
type group struct {
	items []*Item
	tries int
	at    time.Time
	free  bool // the next attempt does not repeat a failed one, so it is not paid from the budget
}

// groups is a heap ordered by time, earliest first.
type groups []*group

func (h groups) Len() int           { return len(h) }
func (h groups) Less(i, j int) bool { return h[i].at.Before(h[j].at) }
func (h groups) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *groups) Push(g any)        { *h = append(*h, g.(*group)) }
func (h *groups) Pop() any {
	old := *h
	g := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	return g
}

// nextRetry takes due groups for another attempt, as many as fit into one request, if the slot share and the budget of
// the first group's lane allow it. See pick.
func (q *Buffer) nextRetry(now time.Time, throttled bool) *batch {
	var passed []*group
	defer func() {
		for _, g := range passed {
			heap.Push(&q.retries, g)
		}
	}()
	for len(q.retries) > 0 && !now.Before(q.retries[0].at) {
		g := heap.Pop(&q.retries).(*group)
		if g.free {
			return q.retryBatch(g, false)
		}
		ok, extra, next := q.permit(g.items[0].lane, now, throttled)
		switch {
		case ok:
			return q.retryBatch(q.merge(now, g), extra)
		case next.IsZero():
			passed = append(passed, g)
		default:
			g.at = next
			heap.Push(&q.retries, g)
		}
	}
	return nil
}

// permit reports whether a lane may make a request that repeats one, or that follows one that served nothing, and pays
// for it. throttled means that the request must use one of the few throttled slots, because no budget paid for it or
// the lane has failed more than once; permit allows that only with mayThrottle. If the lane may not, next says when to
// ask again; zero means when a batch ends.
func (q *Buffer) permit(l *lane, now time.Time, mayThrottle bool) (ok, throttled bool, next time.Time) {
	paid := l.budget >= 1
	next = l.lastUnpaid.Add(retryPace)
	throttled = !paid || l.failed > 1
	switch {
	case !q.hasSlot(l), l.failed > 0 && l.inflight > 0:
		return false, false, time.Time{}
	case l.failed > 0 && now.Before(l.until):
		return false, false, l.until
	case !paid && now.Before(next):
		return false, false, next
	case throttled && (!mayThrottle || q.throttled >= q.throttledSlots()):
		return false, false, time.Time{}
	case paid:
		l.budget--
	default:
		l.lastUnpaid = now
	}
	return true, throttled, time.Time{}
}

// retryBatch makes a batch of a group.
func (q *Buffer) retryBatch(g *group, throttled bool) *batch {
	if !g.free {
		reach.Point(reach.RetriedBatch)
		q.stats.Retries++
	}
	b := newBatch(g.items, g.tries)
	b.reason, b.throttled = Retry, throttled
	return b
}

// merge adds to a group other due groups of the same kind that fit.
func (q *Buffer) merge(now time.Time, g *group) *group {
	entries, bytes, muts := g.size()
	for len(q.retries) > 0 {
		other := q.retries[0]
		n, b, m := other.size()
		if other.free || now.Before(other.at) || other.items[0].Alone != g.items[0].Alone ||
			q.opts.Apart && other.items[0].Tenant != g.items[0].Tenant ||
			entries+n > q.opts.BatchEntries || bytes+b > q.opts.BatchBytes || muts+m > q.opts.BatchMutations {
			break
		}
		heap.Pop(&q.retries)
		entries, bytes, muts = entries+n, bytes+b, muts+m
		g.items = append(g.items, other.items...)
		g.tries = max(g.tries, other.tries)
	}
	byRow(g.items)
	return g
}

func (g *group) size() (entries, bytes, muts int) {
	for _, it := range g.items {
		bytes += it.Bytes
		muts += int(it.Mutations)
	}
	return len(g.items), bytes, muts
}

// scheduleRetry lets items wait for their next attempt. If one of them made the service refuse them all, they go in
// halves and at once; if the service could not take them, after a pause. Each tenant's items wait together, except
// items for which the service asks a longer pause.
func (q *Buffer) scheduleRetry(items []*Item, tries int, now time.Time, r Report) {
	for _, it := range items {
		q.expireBy(it)
	}
	if r.Suspect && len(items) > 1 {
		half := len(items) / 2
		heap.Push(&q.retries, &group{items: items[:half:half], at: now, free: true})
		heap.Push(&q.retries, &group{items: items[half:], at: now, free: true})
		return
	}
	wait := max(min(r.Wait, longestWait), pause(tries))
	if r.Down { // the governor decides when the next request goes
		wait = 0
		if !slices.ContainsFunc(items, func(it *Item) bool { return it.Wait > 0 }) {
			heap.Push(&q.retries, &group{items: items, tries: tries, at: now})
			return
		}
	}
	slices.SortStableFunc(items, func(a, b *Item) int { return cmp.Or(strings.Compare(a.Tenant, b.Tenant), cmp.Compare(a.Wait, b.Wait)) })
	for len(items) > 0 {
		n := 1
		for n < len(items) && items[n].lane == items[0].lane && items[n].Wait == items[0].Wait {
			n++
		}
		at := now.Add(max(wait, min(items[0].Wait, longestWait)))
		heap.Push(&q.retries, &group{items: items[:n:n], tries: tries, at: at})
		items = items[n:]
	}
}

// pause returns how long items wait after the given number of attempts.
func pause(tries int) time.Duration {
	b := exponential(firstRetry, longestRetry)
	d := b.NextBackOff()
	for range min(tries, 16) - 1 {
		d = b.NextBackOff()
	}
	return d
}
