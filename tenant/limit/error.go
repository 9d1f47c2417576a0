package limit

import (
	"errors"
	"fmt"
	"time"

	"github.com/tidemark-go/tidemark/tenant"
)

// ErrExceeded is matched by every *Error.
var ErrExceeded = errors.New("limit: exceeded")

// ErrInvalid is matched by the error of every table or option that nothing can be made of. It names the field, its value
// and what would have been accepted.
var ErrInvalid = errors.New("limit: invalid limits")

// ID names a limit in an *Error. It is also the name of the limit in JSON. IDs do not change: they may be documented, counted
// and compared.
type ID string

// The limits that an *Error can name. (FanOut is not among them: it makes a call narrower and refuses none.)
const (
	PointsPerSecond ID = "points_per_second" // a point came too soon: wait RetryAfter
	BytesPerSecond  ID = "bytes_per_second"  // a payload came too soon: wait RetryAfter
	Entities        ID = "entities"          // a point of an entity that does not count yet, where no other may be added
	Datasets        ID = "datasets"          // a dataset that would be created, where the tenant has as many as it may
	PointBytes      ID = "point_bytes"       // a payload that is too large at any time
	RangeLength     ID = "range_length"      // a range or a page over too much time
	ConcurrentReads ID = "concurrent_reads"  // a read beside too many others: a guess is RetryAfter
)

// Error is the error of what a tenant may not do, or not yet. It matches ErrExceeded. Nothing was sent.
type Error struct {
	ID     ID
	Tenant tenant.ID
	// Limit is the tenant's limit in this process, after its share: points or bytes a second, entities, datasets, bytes,
	// nanoseconds or reads.
	Limit int64
	// Burst is how many points or bytes may come at once, for the two rates; 0 for the others.
	Burst int64
	// Used is what the call would have come to, in the unit of Limit. For the two rates it is to be compared with Burst: the
	// points or bytes of the last while that the rate has not made up for yet, those of the call included.
	Used int64
	// RetryAfter is when the same call is within the limit again, if nothing else of the tenant comes before it. Zero is
	// never, until the limit is raised or, for Entities, others have not been written for a window. For ConcurrentReads it is
	// a guess, RetryRead: nobody knows when a read ends.
	RetryAfter time.Duration
}

// RetryRead is the RetryAfter of a call that was refused because of ConcurrentReads.
const RetryRead = 100 * time.Millisecond

// Error implements error.
func (e *Error) Error() string {
	limit, used := fmt.Sprint(e.Limit), fmt.Sprint(e.Used)
	switch {
	case e.Burst > 0:
		limit = fmt.Sprintf("%d with bursts of %d", e.Limit, e.Burst)
	case e.ID == RangeLength:
		limit, used = time.Duration(e.Limit).String(), time.Duration(e.Used).String()
	}
	after := ""
	if e.RetryAfter > 0 {
		after = fmt.Sprintf("; try again in %v", e.RetryAfter)
	}
	return fmt.Sprintf("%v: %s of %s is %s, this would be %s%s", ErrExceeded, e.ID, e.Tenant, limit, used, after)
}

// Unwrap returns ErrExceeded.
func (e *Error) Unwrap() error { return ErrExceeded }
