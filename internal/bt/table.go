package bt

import (
	"context"
	"time"

	"cloud.google.com/go/bigtable"
)

// Timeouts bound every call; each also ends with the caller's own context, whichever is earlier.
type Timeouts struct {
	Read  time.Duration // one row, or the newest few
	Write time.Duration // one write or one bulk write, with its retries
	Scan  time.Duration // one scan, with what its consumer takes
}

// Table is one table, or one authorized view of it, and how it is spoken to. It is safe for concurrent use.
type Table struct {
	data     bigtable.TableAPI
	cond     bigtable.TableAPI
	timeouts Timeouts
}

// New returns a Table over data. Conditional writes go through cond, which may be the same.
func New(data, cond bigtable.TableAPI, timeouts Timeouts) *Table {
	return &Table{data: data, cond: cond, timeouts: timeouts}
}

// within returns ctx bounded by d, without a timer of its own where ctx ends earlier anyway.
func within(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	if at, ok := ctx.Deadline(); ok && time.Until(at) <= d {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, d)
}
