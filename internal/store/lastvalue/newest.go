package lastvalue

import (
	"sync/atomic"
	"time"

	"cloud.google.com/go/bigtable"
)

// Newest is what is known of the newest visible point of an entity. But for what Keep keeps it does not change once it was
// handed to a Cache.
type Newest struct {
	Layout string // of the dataset that it was read as: what Column counts, and the unit of Units
	Found  bool   // false: there is no visible point; the rest is zero then

	Units   int64 // the point's time
	Cell    bigtable.Timestamp
	Column  int // where the payload stands
	Payload []byte

	asOf  time.Time // when the read was started
	last  *Mark     // of the call that began to write the entity last; guarded by the stripe
	value atomic.Pointer[value]
}

// value is a payload decoded.
type value struct{ by, value any }

// Value returns what Keep was given last, where it was given by the same decoder.
func (n *Newest) Value(by any) (any, bool) {
	if v := n.value.Load(); v != nil && v.by == by {
		return v.value, true
	}
	return nil, false
}

// Keep keeps the payload's value beside it, for those who decode it the same way. It is handed to many callers, so it must
// be one that none of them can change.
func (n *Newest) Keep(by, v any) { n.value.Store(&value{by, v}) }

// overhead is about what a cache needs for an entry beside its key and payload.
const overhead = 320

// bytes is about what n takes in memory: a value that is kept takes about as much as its payload.
func (n *Newest) bytes() int { return overhead + 2*len(n.Payload) }
