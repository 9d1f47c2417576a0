package buffer

import (
	"container/heap"
	"slices"
	"time"
)

// expireBy records an item's deadline.
func (q *Buffer) expireBy(it *Item) {
	if q.opts.Delivery == 0 {
		return
	}
	if oldest := it.coalesced.head; oldest != nil {
		it = oldest
	}
	if at := it.arrived.Add(q.opts.Delivery); q.expiry.IsZero() || at.Before(q.expiry) {
		q.expiry = at
	}
}

// expire ends the items whose deadline has passed. It leaves those in flight, and the items that these have coalesced.
func (q *Buffer) expire(now time.Time) {
	for !q.expiry.IsZero() && !now.Before(q.expiry) {
		q.expiry = time.Time{}
		q.end(q.late(now))
	}
}

// late removes the items whose deadline has passed. Items that wait for the row of such an item may be removed only the
// next time; late then sets expiry so that they are.
func (q *Buffer) late(now time.Time) (over []ending) {
	overdue := func(it *Item) bool { return !now.Before(it.arrived.Add(q.opts.Delivery)) }
	// late ends an item, or at least the items that it has coalesced, which are older.
	late := func(it *Item) bool {
		for c := it.coalesced.head; c != nil && overdue(c); c = it.coalesced.head {
			it.coalesced.pop()
			over = append(over, ending{c, q.timeoutOutcome(c)})
		}
		if !overdue(it) {
			q.expireBy(it)
			return false
		}
		over = append(over, ending{it, q.timeoutOutcome(it)})
		return true
	}
	q.takeOut(late)
	return over
}

// takeOut takes out the items for which ends is true, except those in flight and those that these have coalesced. It
// looks at the oldest items of a queue until ends is false.
func (q *Buffer) takeOut(ends func(*Item) bool) {
	waits := func(it *Item) bool {
		if ends(it) {
			q.leave(it)
			return true
		}
		return false
	}
	for _, l := range q.lanes {
		l.front.remove(waits)
		for it := l.queue.head; it != nil && waits(it); it = l.queue.head { // the queue is in order of arrival
			l.queue.pop()
		}
		for i := range l.chunks {
			l.chunks[i] = slices.DeleteFunc(l.chunks[i], ends)
		}
		l.chunks = slices.DeleteFunc(l.chunks, func(c []*Item) bool { return len(c) == 0 })
		if l.empty() {
			q.ring.remove(l)
		}
	}
	for _, behind := range q.rows {
		if behind == nil {
			continue
		}
		for it := behind.head; it != nil && ends(it); it = behind.head {
			behind.pop()
		}
	}
	for _, g := range q.retries {
		g.items = slices.DeleteFunc(g.items, ends)
	}
	q.retries = slices.DeleteFunc(q.retries, func(g *group) bool { return len(g.items) == 0 })
	heap.Init(&q.retries)
}

// abandon ends everything that is not in flight, after the buffer was closed and Close no longer waits.
func (q *Buffer) abandon() {
	var over []ending
	q.takeOut(func(it *Item) bool {
		over = append(over, ending{it, q.abandonedOutcome(it)})
		return true
	})
	q.end(over)
}
