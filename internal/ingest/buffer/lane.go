package buffer

import (
	"slices"
	"strings"
	"time"
)

// A lane is one tenant's part of the buffer. Items that go alone have a lane of their own.
type lane struct {
	id laneID

	// What waits to be sent: first what had waited for its row, then what came.
	front, queue list
	chunks       [][]*Item // of a long queue: sorted and cut, ready to go
	waiting      int       // items in front and queue
	bytes, muts  int       // of them

	held      int // items from Enqueue until Done has returned
	heldBytes int64
	inflight  int // batches with items of this lane

	// Repeats are paid from a budget that each request fills by a fifth in which an item of the lane was served.
	budget float64
	paced  time.Time // of the last repeat that the budget did not pay
	// While nothing of the lane's last attempts was served, it makes one request at a time, with growing waits, and pays for
	// each as for a repeat.
	failed int       // attempts of which nothing was served, one after the other
	until  time.Time // before which it sends nothing then

	blocked waiters

	prev, next *lane // in the ring of lanes that have something to send
	ringed     bool
}

type laneID struct {
	tenant string
	alone  bool
}

func (l *lane) empty() bool { return l.waiting == 0 && len(l.chunks) == 0 }

// push adds an item at the end of the lane, or before everything that came after it where it had waited for its row.
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

// pop takes the lane's next item whose row is free, and takes the row for it. Items whose rows are taken are put aside to
// wait for them. It returns nil where none is left.
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

// leave counts an item out of those that wait in their lane.
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

// claim takes the item's row for it, or lets it wait for the row. Rows are known by a hash: two that share one only wait for
// each other without need.
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

// release gives up the item's row, and lets those that waited for it go next: all of them, where they depend on what the
// row holds, and else the last of each row, which replaces what those before it write, or brings it with it.
func (q *Buffer) release(it *Item) {
	behind := q.rows[it.hash]
	delete(q.rows, it.hash)
	it.claimed = false
	if behind == nil {
		return
	}
	for next := behind.pop(); next != nil; next = behind.pop() {
		if after := behind.head; after != nil && after.Key == next.Key && next.covered() && after.covered() {
			after.cover(next)
			continue
		}
		q.push(next.lane, next, true)
		q.expireBy(next)
	}
}

// covered reports whether a later item of its row can stand for this one.
func (it *Item) covered() bool { return !it.Alone || it.Merge }

// cover lets the item stand for an earlier one of the same row, and for those that that one stands for.
func (it *Item) cover(earlier *Item) {
	all := earlier.covers
	earlier.covers = list{}
	all.push(earlier)
	all.append(&it.covers)
	it.covers = all
}

// uncover lets what the item was to replace wait for the row again, before all others: the item was refused and replaces
// nothing.
func (q *Buffer) uncover(it *Item) {
	if it.covers.head == nil {
		return
	}
	all := it.covers
	it.covers = list{}
	if behind := q.rows[it.hash]; behind != nil {
		all.append(behind)
	}
	q.rows[it.hash] = &all
}

// ring is the lanes that have something to send, in the order of their turns.
type ring struct {
	at *lane // whose turn it is
	n  int
}

func (r *ring) add(l *lane) {
	if l.ringed {
		return
	}
	l.ringed = true
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
	if !l.ringed {
		return
	}
	l.ringed = false
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

// byRow sorts items by row, so that a request lies in as few ranges of the table as can be.
func byRow(items []*Item) {
	slices.SortFunc(items, func(a, b *Item) int { return strings.Compare(a.Key, b.Key) })
}
