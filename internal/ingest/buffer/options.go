package buffer

import (
	"time"

	"github.com/tidemark-go/tidemark/internal/bt"
)

// Options are checked by the caller. All are required, except where a comment allows a zero.
type Options struct {
	BatchEntries, BatchMutations, BatchBytes int
	// AloneEntries is how many items that go alone make a batch.
	AloneEntries int
	Linger       time.Duration // how long an item waits for others; 0 means not at all
	// BufferEntries and BufferBytes bound the items between Enqueue and the return of Done.
	BufferEntries int
	BufferBytes   int64
	InFlight      int // largest number of batches in flight
	// Apart keeps tenants apart: all items of a batch belong to one tenant.
	Apart bool
	// FlowControl follows the service's advice on the rate of batches (Report.Limit).
	FlowControl bool
	// Request is the timeout of one attempt.
	Request time.Duration
	// Delivery bounds how long an item stays in the buffer; 0 means no bound.
	Delivery time.Duration
	// Freed receives a signal each time room becomes free; it may be nil.
	Freed chan struct{}
	// Sends is called before each attempt, by many goroutines; it may be nil.
	Sends func(Sending)
	// HealthChanged is called when the service counts as down, with the reason, and with nil when it is back, with the
	// duration of the outage. It may be nil.
	HealthChanged func(down error, after time.Duration)
	// Failed is called for each item that ended and is not stored, before its Done; it may be nil.
	Failed func(*Item, bt.Outcome)
	// Free is called for each item, after all else, when the buffer no longer refers to it. It may be nil.
	Free func(*Item)
}

// Sending is an attempt at a batch.
type Sending struct {
	Items  int
	Wait   time.Duration // of the oldest item, since Enqueue
	Reason Reason
}

// Reason says why a batch is sent.
type Reason string

const (
	Full    Reason = "full"   // the batch has reached a limit
	Linger  Reason = "linger" // its oldest item has waited for Linger
	Crowd   Reason = "crowd"  // the items of all tenants together fill a batch
	Flush   Reason = "flush"  // a caller waits in Flush
	Closing Reason = "close"  // the buffer is being closed
	Retry   Reason = "retry"  // its items were sent before
)

// Stats describes a buffer's contents and counts its work.
type Stats struct {
	Entries  int   // held
	Bytes    int64 // held
	Oldest   time.Duration
	InFlight int   // batches
	Slots    int   // batches that may be in flight now
	Rate     int64 // bytes a second that may be sent while the service asks for less; 0 means no limit
	Stored   uint64
	Rejected uint64
	Unknown  uint64
	Requests uint64 // attempts at batches
	Retries  uint64 // of them, repeated ones
	Blocked  time.Duration
	Down     error // why the service counts as unreachable; nil if it is reachable
}
