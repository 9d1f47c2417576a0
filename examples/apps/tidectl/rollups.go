package main

import (
	"context"
	"iter"
	"slices"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/examples/internal/aggregate"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/dynamic"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

// fromRollup returns the windows of an entity from a rollup that keeps measures of these names, and its name. It is
// empty if none fits.
func (q *windowQuery) fromRollup(ctx context.Context, c *cli.Command, store *tsdb.Store, id tenant.ID, dataset string, e tsdb.Entity, options dynamic.Options) (rollup string, found iter.Seq2[window.Bucket, error], err error) {
	var measures []window.Measure[struct{}]
	for _, m := range q.measures { // a rollup is read by the names of its measures
		none := func(struct{}) codec.Value { return codec.Value{} }
		measures = append(measures, window.Measure[struct{}]{Name: m.Name, Kind: m.Kind, Aggregates: m.Aggregates, Value: none})
	}
	windows, err := window.New(q.grid, measures, q.opts)
	if err != nil {
		return "", nil, usageError{err}
	}
	for d, err := range store.Datasets(ctx) {
		if d == nil || d.Name() != dataset {
			continue
		}
		if err != nil {
			return "", nil, err
		}
		_, schema, err := dynamic.Rollups(d, options)
		if err != nil {
			return "", nil, err
		}
		repo := schema.For(store, id)
		rollup, err = windows.Source(ctx, repo, interval(c))
		return rollup, windows.Read(ctx, repo, e, interval(c), tsdb.OldestFirst), err
	}
	return "", nil, nil
}

// rolled is a window of a rollup in JSON.
type rolled struct {
	aggregate.Bucket
	Incomplete string `json:"incomplete,omitempty"`
}

// stored returns a window of a rollup as it is shown: where its numbers are not known, with those that are stored, and
// with a remark.
func stored(b window.Bucket) (shown window.Bucket, incomplete string) {
	if b.Incomplete == nil {
		return b, ""
	}
	if b.Points+b.Bad == 0 {
		b.Points, b.Bad = b.Incomplete.Points, b.Incomplete.Bad
	}
	b.Values = slices.Clone(b.Values)
	for i := range b.Values {
		if b.Values[i].Missing != 0 && b.Points+b.Bad > 0 {
			b.Values[i] = b.Incomplete.Values[i]
		}
	}
	return b, "changed " + b.Incomplete.Changed.Format(time.RFC3339)
}
