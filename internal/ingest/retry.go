package ingest

import (
	"container/heap"
	"time"
)

// group is items that wait together for their next attempt.
type group struct {
	items []*Item
	tries int
	at    time.Time
	free  bool // the next attempt is no repeat of one that failed: it costs nothing of the budget
}

// groups is a heap, the earliest first.
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

// repeat takes what is to be sent again: the groups whose time has come, as many as go into one request, where the budget
// allows one.
func (q *Buffer) repeat(now time.Time) *batch {
	for len(q.retries) > 0 && !now.Before(q.retries[0].at) {
		g := q.retries[0]
		if g.free {
			heap.Pop(&q.retries)
			return newBatch(g.items, g.tries)
		}
		ok, next := q.gov.repeat(now)
		if !ok {
			g.at = next
			heap.Fix(&q.retries, 0)
			continue
		}
		q.stats.Retries++
		return q.merge(now)
	}
	return nil
}

// merge takes the first group and those that are due, go the same way, and fit beside it.
func (q *Buffer) merge(now time.Time) *batch {
	g := heap.Pop(&q.retries).(*group)
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
	return newBatch(g.items, g.tries)
}

func (g *group) size() (entries, bytes, muts int) {
	for _, it := range g.items {
		bytes += it.Bytes
		muts += int(it.Mutations)
	}
	return len(g.items), bytes, muts
}

// again lets items wait for their next attempt: in halves and at once where one of them made the service refuse all of
// them, and after a while where the service could not take them.
func (q *Buffer) again(items []*Item, tries int, now time.Time, r Report) {
	for _, it := range items {
		q.expireBy(it)
	}
	if r.Suspect && len(items) > 1 {
		half := len(items) / 2
		heap.Push(&q.retries, &group{items: items[:half:half], at: now, free: true})
		heap.Push(&q.retries, &group{items: items[half:], at: now, free: true})
		return
	}
	at := now
	if !r.Down { // where it is, the governor decides when the next request goes
		at = now.Add(max(min(r.Wait, longestWait), pause(tries)))
	}
	heap.Push(&q.retries, &group{items: items, tries: tries, at: at})
}

// pause is how long items wait after so many attempts.
func pause(tries int) time.Duration {
	b := exponential(firstRetry, longestRetry)
	d := b.NextBackOff()
	for range min(tries, 16) - 1 {
		d = b.NextBackOff()
	}
	return d
}
