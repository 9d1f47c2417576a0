package bt

import (
	"context"
	"sync/atomic"
	"time"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/internal/ctxerr"
)

// Timeouts bound every call. A call also ends with the caller's own context, if that ends earlier.
type Timeouts struct {
	Read  time.Duration // reads of one row or of the newest few
	Write time.Duration // one write request, with its retries
	Scan  time.Duration // one scan, including its consumer's time, or one call that writes many rows
}

// Table is one table, or one authorized view of it, with its clients. It is safe for concurrent use.
type Table struct {
	data     bigtable.TableAPI
	cond     bigtable.TableAPI
	bulk     bigtable.TableAPI
	timeouts Timeouts
	guarded  atomic.Bool // a call was seen to pass the guard
}

// New returns a Table over data. Conditional writes use cond, and reads of BulkReads use bulk. Both may be the same as
// data.
func New(data, cond, bulk bigtable.TableAPI, timeouts Timeouts) *Table {
	return &Table{data: data, cond: cond, bulk: bulk, timeouts: timeouts}
}

// SingleCluster returns the table with all calls routed by the app profile of conditional writes. A read that a
// conditional write depends on must use it: another profile may read from a cluster without the latest writes.
func (t *Table) SingleCluster() *Table { return New(t.cond, t.cond, t.cond, t.timeouts) }

// BulkReads returns the table with reads routed by the app profile of bulk reads. With Data Boost they may lack the
// writes of half an hour, so nothing that is written, refused or deleted may depend on them.
func (t *Table) BulkReads() *Table { return New(t.bulk, t.cond, t.bulk, t.timeouts) }

// Bound returns ctx with the timeout of scans if long is set, and else the timeout of reads. It bounds all requests of
// a call together.
func (t *Table) Bound(ctx context.Context, long bool) (context.Context, context.CancelFunc) {
	if long {
		return within(ctx, t.timeouts.Scan)
	}
	return within(ctx, t.timeouts.Read)
}

// within returns ctx with the timeout d, and without another timer if ctx ends earlier. For a nil context it returns
// one that has ended.
func within(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	ctx = ctxerr.Given(ctx)
	if at, ok := ctx.Deadline(); ok && time.Until(at) <= d {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, d)
}

// Timeouts returns the bounds of the table's calls.
func (t *Table) Timeouts() Timeouts { return t.timeouts }
