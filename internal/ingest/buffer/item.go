// Package buffer is the writer's buffer. It takes writes of many tenants, forms batches, sends them through a Sender,
// and follows each write until it ends. It knows nothing of points, schemas or Bigtable's requests.
//
// Guarantees:
//
//   - Memory stays within the buffer's limits.
//   - Each item ends exactly once.
//   - Two items of one row are sent in the order of their arrival, never in one batch and never at the same time. If
//     several items wait for a row that is in flight, only the last one is sent: it replaces the others or, if they
//     merge, carries them along.
//   - A tenant that floods the buffer leaves room, and every next slot, to the others.
//   - In an outage the requests of all items together stay within one budget.
package buffer

import (
	"context"
	"iter"
	"time"

	"github.com/tidemark-go/tidemark/internal/bt"
)

// Item is one write. The caller sets the exported fields and must not touch the item until Done is called.
type Item struct {
	Tenant string // whose share of the buffer the item takes
	Key    string // of the item's row
	Bytes  int    // the item's size in memory
	Work   any    // the Sender's data
	// Done is called with the outcome of the write, exactly once, on one goroutine for all items of the buffer. It may
	// be nil.
	Done func(*Item, bt.Outcome)

	// Set by the Sender: the result of the attempts so far, and whether another attempt is needed.
	Track bt.Tracker
	Retry bool
	Wait  time.Duration // with Retry: the pause that the service asks for this item; 0 means none

	// The order of the fields keeps the struct small.
	Mutations int32 // the item's mutations in a request
	Alone     bool  // it cannot go in a bulk request; such items never share a batch with others. All items of a row agree on it
	Merge     bool  // with Alone: all items that wait for a row go together with the last of them. All items of a row agree on it
	claimed   bool  // the item holds its row
	lane      *lane
	next      *Item
	coalesced list // earlier items of the same row, oldest first, that it replaces or carries along; they end with it
	hash      uint64
	gen       uint64
	arrived   time.Time
}

// Sender makes attempts at batches.
type Sender interface {
	// Send makes one attempt at the items of a batch, which are sorted by row. It adds the attempt to each item's Track
	// and sets its Retry. It must return soon after ctx ends.
	Send(ctx context.Context, items []*Item) Report
}

// Report is the result of a whole request. The service's answer for a single item is in the item; it slows down only
// that item and its tenant.
type Report struct {
	// Down means that the service did not serve the request at all. Err is the cause.
	Down bool
	// Overload means that the service asks for fewer requests.
	Overload bool
	// Suspect means that the service refused the whole request because of one item's contents. Items with Retry set are
	// then sent again in halves.
	Suspect bool
	// Wait is the pause that the service asks for; 0 means none.
	Wait time.Duration
	// Limit is the service's advice on the rate of batches; zero means none. A Sender sets it only with
	// Options.FlowControl.
	Limit bt.RateLimit
	Err   error
}

// Coalesced returns the earlier items of the row that this one replaces or, if they merge, carries along, oldest first.
// The Sender may call it until Send returns.
func (it *Item) Coalesced() iter.Seq[*Item] {
	return func(yield func(*Item) bool) {
		for c := it.coalesced.head; c != nil && yield(c); c = c.next {
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

// remove removes the items for which f is true.
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
