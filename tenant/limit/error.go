package limit

import (
	"errors"
	"fmt"
	"time"

	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/tenant"
)

// ErrExceeded matches every *Error.
var ErrExceeded = errors.New("limit: exceeded")

// ID names a limit in an *Error and in JSON. IDs do not change: you may document, count and compare them.
type ID string

// The limits that an *Error can name. (FanOut is not one of them: it limits the requests of a call and refuses no
// call.)
const (
	PointsPerSecond ID = "points_per_second" // a point came too soon: wait RetryAfter
	BytesPerSecond  ID = "bytes_per_second"  // a payload came too soon: wait RetryAfter
	Entities        ID = "entities"          // a point of a new entity over the limit
	Datasets        ID = "datasets"          // creation of a dataset over the limit
	PointBytes      ID = "point_bytes"       // a payload that is too large
	RangeLength     ID = "range_length"      // a range or a page over too much time
	ConcurrentReads ID = "concurrent_reads"  // too many reads at once: RetryAfter is a guess
	Followers       ID = "followers"         // a follower more than a tenant may have in a store, which is 100: RetryAfter is a guess
)

// Error is the error of a call over a limit. It matches ErrExceeded. Nothing was sent.
type Error struct {
	ID     ID
	Tenant tenant.ID
	// Limit is the tenant's limit in this process, after Table.Share. Its unit is points or bytes per second,
	// entities, datasets, bytes, nanoseconds, reads or followers.
	Limit int64
	// Burst is how many points or bytes are allowed at once, for the two rates; 0 for the others.
	Burst int64
	// Used is the usage including the call, in the unit of Limit. For the two rates, compare it with Burst: it is the
	// used part of the burst plus the points or bytes of the call.
	Used int64
	// RetryAfter is when the same call is within the limit, if the tenant makes no other call before. Zero means: not
	// until the limit is raised or, for Entities, until other entities have not been written for a window. For
	// ConcurrentReads and Followers it is a guess, because the end of a read or a follower is unknown.
	RetryAfter time.Duration
}

// retryRead is the RetryAfter of a call refused by ConcurrentReads.
const retryRead = 100 * time.Millisecond

// Error implements error.
func (e *Error) Error() string {
	e = invalid.OrZero(e)
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
