package bt

import (
	"context"
	"sync/atomic"
	"time"

	"cloud.google.com/go/bigtable"
)

// Timeouts bound every call; each also ends with the caller's own context, whichever is earlier.
type Timeouts struct {
	Read  time.Duration // one row, or the newest few
	Write time.Duration // one request that writes, with its retries
	Scan  time.Duration // one scan, with what its consumer takes, or one call that writes many rows
}

// Table is one table, or one authorized view of it, and how it is spoken to. It is safe for concurrent use.
type Table struct {
	data     bigtable.TableAPI
	cond     bigtable.TableAPI
	timeouts Timeouts
	guarded  atomic.Bool // a call was seen to pass the guard
}

// New returns a Table over data. Conditional writes go through cond, which may be the same.
func New(data, cond bigtable.TableAPI, timeouts Timeouts) *Table {
	return &Table{data: data, cond: cond, timeouts: timeouts}
}

// SingleCluster returns the table with every call through the app profile of conditional writes. A read that a conditional
// write depends on goes through it: another profile may answer from a cluster that has not heard of the latest writes.
func (t *Table) SingleCluster() *Table { return New(t.cond, t.cond, t.timeouts) }

// Bound returns ctx bounded by the timeout of scans where long is set, and of reads where it is not. A call of several
// requests bounds them together.
func (t *Table) Bound(ctx context.Context, long bool) (context.Context, context.CancelFunc) {
	if long {
		return within(ctx, t.timeouts.Scan)
	}
	return within(ctx, t.timeouts.Read)
}

// within returns ctx bounded by d, without a timer of its own where ctx ends earlier anyway.
func within(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	if at, ok := ctx.Deadline(); ok && time.Until(at) <= d {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, d)
}

// Timeouts returns the bounds of the table's calls.
func (t *Table) Timeouts() Timeouts { return t.timeouts }
