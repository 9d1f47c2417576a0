package buffer

import (
	"time"

	"github.com/tidemark-go/tidemark/internal/bt"
)

// Options are all required, and checked by the caller.
type Options struct {
	BatchEntries, BatchMutations, BatchBytes int
	// AloneEntries is how many items that go alone make a batch.
	AloneEntries int
	Linger       time.Duration // that an item waits for others; 0 for none
	// BufferEntries and BufferBytes bound what is held, from Enqueue until Done has returned.
	BufferEntries int
	BufferBytes   int64
	InFlight      int // batches at once, at most
	// Apart keeps tenants apart: the items of a batch are of one.
	Apart bool
	// Request bounds one attempt.
	Request time.Duration
	// Delivery bounds an item's stay; 0 for no bound.
	Delivery time.Duration
	// Freed is poked each time that room is given back; nil for nobody.
	Freed chan struct{}
	// Sends is told of each attempt before it is made, by many goroutines; nil for nobody.
	Sends func(Sending)
	// Turned is told that the service is taken for down, and why, and with nil that it is back, after how long; nil for nobody.
	Turned func(down error, after time.Duration)
	// Failed is told of each item that ended and is not stored, before its Done; nil for nobody.
	Failed func(*Item, bt.Outcome)
}

// Sending is an attempt at a batch.
type Sending struct {
	Items  int
	Wait   time.Duration // of the oldest of them, since Enqueue
	Reason Reason
}

// Reason says why a batch goes.
type Reason string

// The reasons.
const (
	Full    Reason = "full"   // it holds as much as one may
	Linger  Reason = "linger" // its oldest item has waited for others long enough
	Crowd   Reason = "crowd"  // the items of all tenants together fill a batch
	Flush   Reason = "flush"  // somebody waits for Flush
	Closing Reason = "close"  // the buffer is being closed
	Retry   Reason = "retry"  // it was sent before
)

// Stats is what a buffer holds and has done.
type Stats struct {
	Entries  int   // held
	Bytes    int64 // held
	Oldest   time.Duration
	InFlight int // batches
	Slots    int // batches that may be in flight now
	Stored   uint64
	Rejected uint64
	Unknown  uint64
	Requests uint64 // attempts at batches
	Retries  uint64 // of them, repeated ones
	Blocked  time.Duration
	Down     error // why the service is taken for unreachable now; nil where it is not
}
