// Package buffer is the writer's buffer: it takes writes of many tenants, forms batches, sends them through a Sender, and
// sees each write to its end. It knows nothing of points, schemas or Bigtable's requests.
//
// Its promises: memory stays within the buffer's limits; each item ends exactly once; two items of one row are sent in the
// order in which they came, never in one batch and never at the same time, and of those that wait for their row while
// another is under way only the last is sent, as it replaces the others or, where they merge, brings them with it; a tenant that floods leaves room, and every
// next slot, to the others; and in an outage the requests of all items together stay within one budget.
package buffer

import (
	"context"
	"iter"
	"time"

	"github.com/tidemark-go/tidemark/internal/bt"
)

// Item is one write on its way. The caller sets the exported fields and leaves the item alone until Done is called.
type Item struct {
	Tenant string // whose share of the buffer it takes
	Key    string // of its row
	Bytes  int    // that it takes in memory
	Work   any    // for the Sender
	// Done is told how the write ended, exactly once, on one goroutine for all items of the buffer. Nil is for nobody.
	Done func(*Item, bt.Outcome)

	// For the Sender: what is known of the attempts so far, and whether the last one leaves another to be made.
	Track bt.Tracker
	Again bool
	Wait  time.Duration // with Again: how long the service asks to leave this item alone; 0 for no such wish

	// The fields are in an order in which they take little memory.
	Mutations int32 // that it takes in a request
	Alone     bool  // it cannot go in a bulk request; a batch holds only such, or none. All items of a row agree on it
	Merge     bool  // with Alone: what waits for a row goes together with the last of it. All items of a row agree on it
	claimed   bool  // it has taken its row
	lane      *lane
	next      *Item
	covers    list // earlier ones of the same row, which it replaces or brings with it, oldest first: they end as it does
	hash      uint64
	gen       uint64
	arrived   time.Time
}

// Sender makes attempts at batches.
type Sender interface {
	// Send makes one attempt at the items of a batch, which are in the order of their rows. It adds the attempt to each
	// item's Track and sets its Again. It must end soon after ctx does.
	Send(ctx context.Context, items []*Item) Report
}

// Report is how a request ended as a whole, apart from the single items. What the service says of an item, the item itself
// holds: it slows down that item and its tenant, and nobody else.
type Report struct {
	// Down: the service did not serve the request at all. Its cause is Err.
	Down bool
	// Overload: the service asks for less.
	Overload bool
	// Suspect: the request was refused as a whole for what one of its items holds. Items that are then Again are sent again
	// in halves.
	Suspect bool
	// Wait is how long the service asks to be left alone; 0 for no such wish.
	Wait time.Duration
	Err  error
}

// Covered returns the earlier items of the row that this one replaces, or brings with it where they merge, oldest first. It
// is for the Sender, until Send returns.
func (it *Item) Covered() iter.Seq[*Item] {
	return func(yield func(*Item) bool) {
		for c := it.covers.head; c != nil && yield(c); c = c.next {
		}
	}
}

// list is a queue of items linked by their next.
type list struct{ head, tail *Item }

func (l *list) push(it *Item) {
	it.next = nil
	if l.tail == nil {
		l.head = it
	} else {
		l.tail.next = it
	}
	l.tail = it
}

func (l *list) pop() *Item {
	it := l.head
	if it == nil {
		return nil
	}
	l.head = it.next
	if l.head == nil {
		l.tail = nil
	}
	it.next = nil
	return it
}

// remove takes out the items that f picks.
func (l *list) remove(f func(*Item) bool) {
	var rest list
	for it := l.pop(); it != nil; it = l.pop() {
		if !f(it) {
			rest.push(it)
		}
	}
	*l = rest
}

// append moves all of o to the end of l.
func (l *list) append(o *list) {
	switch {
	case o.head == nil:
		return
	case l.tail == nil:
		*l = *o
	default:
		l.tail.next = o.head
		l.tail = o.tail
	}
	*o = list{}
}
