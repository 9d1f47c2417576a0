package bt

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/internal/ctxerr"
	"github.com/tidemark-go/tidemark/internal/reach"
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

// Apply writes one row, and retries within the timeout of writes. Repeating the mutation must not change the stored
// result.
func (t *Table) Apply(ctx context.Context, key string, mut *bigtable.Mutation) Outcome {
	return t.ApplyEntry(ctx, Entry{Key: key, Mutation: mut})
}

// ApplyEntry is Apply of an entry.
func (t *Table) ApplyEntry(ctx context.Context, e Entry) Outcome {
	call := struct { // one allocation
		deadline
		record
	}{deadline: deadline{Context: ctxerr.Given(ctx), at: time.Now().Add(t.timeouts.Write)}}
	defer call.stop()
	var tr Tracker
	var pause pauser
	for rec := &call.record; ; rec = new(record) {
		ctx := &call.deadline
		if ctx.Err() != nil {
			if tr.attempts == 0 {
				return notSent(ctx)
			}
			return tr.Outcome()
		}
		key, mut := standInKeys[0], standIn[0]
		if e.Direct != nil && t.guarded.Load() {
			rec.row = rowRequest(&e)
		} else {
			key, mut = e.Key, e.mutation()
		}
		err := t.data.Apply(withRecord(ctx, rec), key, mut)
		if !rec.seen {
			if err == nil && rec.row != nil {
				err = errStandIn
			}
			return unguarded(ended(ctx, err))
		}
		t.guarded.Store(true)
		tr.Note(ended(ctx, rec.err), !refused(rec.err))
		if rec.err == nil || !retryable(rec.err) || !pause.wait(ctx, rec.err) {
			return tr.Outcome()
		}
		reach.Point(reach.RepeatedWrite)
	}
}

// Conditional writes one row under a condition on its contents, in one attempt, and reports whether the condition held.
// It does not retry: a second attempt would check the row as the first one left it.
func (t *Table) Conditional(ctx context.Context, key string, cond bigtable.Filter, then, otherwise *bigtable.Mutation) (matched bool, out Outcome) {
	ctx, cancel := within(ctx, t.timeouts.Write)
	defer cancel()
	if ctx.Err() != nil {
		return false, notSent(ctx)
	}
	var rec record
	var tr Tracker
	err := t.cond.Apply(withRecord(ctx, &rec), key, bigtable.NewCondMutation(cond, then, otherwise), bigtable.GetCondMutationResult(&matched))
	if rec.seen { // the client removes the service's retry delay, and never retries these calls
		err = rec.err
	}
	tr.Note(ended(ctx, err), !refused(err))
	return matched, tr.Outcome()
}

// unguarded returns the outcome of a write that did not pass the guard, and that the client may have repeated.
func unguarded(err error) Outcome {
	if err == nil {
		return Outcome{State: Stored, Attempts: 1}
	}
	return Outcome{State: Unknown, Attempts: 1, Err: fmt.Errorf("%w: %w", ErrUnguarded, err)}
}
