package tsdb_test

import (
	"context"
	"time"

	"github.com/tidemark-go/tidemark/tsdb"
)

// sinkCalls are the calls of a sink, by method, with the same rule.
var sinkCalls = map[string]func(ctx context.Context, in *tsdb.Sink[string], e tsdb.Entity, at time.Time) error{
	"Enqueue": func(ctx context.Context, in *tsdb.Sink[string], e tsdb.Entity, at time.Time) error {
		return in.Enqueue(ctx, e, at, "new")
	},
	"TryEnqueue": func(ctx context.Context, in *tsdb.Sink[string], e tsdb.Entity, at time.Time) error {
		return in.TryEnqueue(ctx, e, at.Add(time.Hour), "new")
	},
	"EnqueueFunc": func(ctx context.Context, in *tsdb.Sink[string], e tsdb.Entity, at time.Time) error {
		return in.EnqueueFunc(ctx, e, at.Add(2*time.Hour), "new", func(tsdb.Outcome) {})
	},
	"EnqueueMany": func(ctx context.Context, in *tsdb.Sink[string], e tsdb.Entity, at time.Time) error {
		_, err := in.EnqueueMany(ctx, []tsdb.Point[string]{{Entity: e, Time: at, Value: "new"}})
		return err
	},
}
