package inbound

import (
	"context"
	"errors"

	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/rollup"
)

// Counts reports whether messages of the route are counted, and not stored as points.
func (r *Route) Counts() bool { return r.counts != nil }

// EventBytes is what an event of a route that counts takes of a tenant's rate of bytes: a number for each sum.
func (r *Route) EventBytes() int64 { return 8 * int64(len(r.sums)) }

// Count adds an event to the rollup of a route that counts, unless it has been added before. The outcome is as those of
// Enqueue, except that Stored also means: added before.
func (s Sink) Count(ctx context.Context, id tenant.ID, r *Route, e Event) tsdb.Outcome {
	repo := e.Dataset.schema.For(s.Store, id)
	_, err := rollup.NewAdder(r.counts, repo, nil).AddMessage(ctx, e.ID, e.Entity, e.Time, e.Record)
	switch {
	case err == nil:
		return tsdb.Outcome{State: tsdb.Stored}
	case errors.Is(err, rollup.ErrTooManyMessages): // the row forgets some with time
		return tsdb.Outcome{State: tsdb.Unknown, Err: err}
	case errors.Is(err, tsdb.ErrRejected):
		return classify(tsdb.Outcome{State: tsdb.Rejected, Err: err})
	}
	return tsdb.Outcome{State: tsdb.Unknown, Err: err}
}
