package buffer

import (
	"slices"
	"strings"
	"time"
)

// A lane is one tenant's part of the buffer. A tenant's items that go alone have their own lane.
type lane struct {
	id laneID

	// Waiting items: front holds those that had to wait for their row, queue the newer ones.
	front, queue list
	chunks       [][]*Item // parts of a long queue, sorted and cut, ready to send
	waiting      int       // items in front and queue
	bytes, muts  int       // of them

	held      int // items between Enqueue and the return of Done
	heldBytes int64
	inflight  int // batches in flight with items of this lane

	// Repeats are paid from a budget. Each request that serves an item of the lane adds a fifth.
	budget     float64
	lastUnpaid time.Time // time of the last repeat that the budget did not pay for
	// While the lane's last attempts served nothing, the lane makes one request at a time, with growing pauses, and
	// needs a permit for each as for a repeat.
	failed int       // consecutive attempts that served nothing
	until  time.Time // it sends nothing before this time

	blocked waiters

	prev, next *lane // in the ring of lanes that have something to send
	inRing     bool
}

type laneID struct {
	tenant string
	alone  bool
}

func (l *lane) empty() bool { return l.waiting == 0 && len(l.chunks) == 0 }

// push adds an item at the end of the lane's queue. An item that had to wait for its row goes to the front list, before
// all newer ones.
func (q *Buffer) push(l *lane, it *Item, front bool) {
	if front {
		l.front.push(it)
	} else {
		l.queue.push(it)
	}
	l.waiting++
	l.bytes += it.Bytes
	l.muts += int(it.Mutations)
	q.waiting++
	q.ring.add(l)
}

// pop removes the lane's next item whose row is free, and claims the row for it. It makes items whose rows are taken
// wait for them. It returns nil if no item is left.
func (q *Buffer) pop(l *lane) *Item {
	for {
		it := l.front.pop()
		if it == nil {
			it = l.queue.pop()
		}
		if it == nil {
			return nil
		}
		q.leave(it)
		if q.claim(it) {
			return it
		}
	}
}

// leave subtracts an item from the waiting ones of its lane.
func (q *Buffer) leave(it *Item) {
	l := it.lane
	l.waiting--
	l.bytes -= it.Bytes
	l.muts -= int(it.Mutations)
	q.waiting--
}

// peek returns the item that pop looks at first.
func (l *lane) peek() *Item {
	if l.front.head != nil {
		return l.front.head
	}
	return l.queue.head
}

// claim claims the item's row, or lets the item wait for the row. Rows are identified by a hash; two rows with the same
// hash only wait for each other needlessly.
func (q *Buffer) claim(it *Item) bool {
	behind, taken := q.rows[it.hash]
	if !taken {
		q.rows[it.hash] = nil
		it.claimed = true
		return true
	}
	if behind == nil {
		behind = new(list)
		q.rows[it.hash] = behind
	}
	behind.push(it)
	return false
}

// release frees the item's row and makes the items that waited for it go next. Items that depend on what the row holds
// all go. Of other items only the last of each row goes; it coalesces those before it.
func (q *Buffer) release(it *Item) {
	behind := q.rows[it.hash]
	delete(q.rows, it.hash)
	it.claimed = false
	if behind == nil {
		return
	}
	for next := behind.pop(); next != nil; next = behind.pop() {
		if after := behind.head; after != nil && after.Key == next.Key && next.canCoalesce() && after.canCoalesce() {
			after.coalesce(next)
			continue
		}
		q.push(next.lane, next, true)
		q.expireBy(next)
	}
}

// canCoalesce reports whether a later item of the row can replace this one or carry it along.
func (it *Item) canCoalesce() bool { return !it.Alone || it.Merge }

// coalesce makes the item replace or carry along an earlier one of the same row, and the items that the earlier one has
// coalesced.
func (it *Item) coalesce(earlier *Item) {
	all := earlier.coalesced
	earlier.coalesced = list{}
	all.push(earlier)
	all.append(&it.coalesced)
	it.coalesced = all
}

// splitCoalesced lets the items that this one has coalesced wait for the row again, before all others: this one was
// refused and replaces nothing.
func (q *Buffer) splitCoalesced(it *Item) {
	if it.coalesced.head == nil {
		return
	}
	all := it.coalesced
	it.coalesced = list{}
	if behind := q.rows[it.hash]; behind != nil {
		all.append(behind)
	}
	q.rows[it.hash] = &all
}

// ring holds the lanes that have something to send, in the order of their turns.
type ring struct {
	at *lane // the lane whose turn is next
	n  int
}

func (r *ring) add(l *lane) {
	if l.inRing {
		return
	}
	l.inRing = true
	r.n++
	if r.at == nil {
		l.prev, l.next = l, l
		r.at = l
		return
	}
	l.prev, l.next = r.at.prev, r.at
	l.prev.next, l.next.prev = l, l
}

func (r *ring) remove(l *lane) {
	if !l.inRing {
		return
	}
	l.inRing = false
	r.n--
	if r.n == 0 {
		r.at = nil
	} else {
		l.prev.next, l.next.prev = l.next, l.prev
		if r.at == l {
			r.at = l.next
		}
	}
	l.prev, l.next = nil, nil
}

// byRow sorts items by row, so that a request touches few ranges of the table.
func byRow(items []*Item) {
	slices.SortFunc(items, func(a, b *Item) int { return strings.Compare(a.Key, b.Key) })
}
