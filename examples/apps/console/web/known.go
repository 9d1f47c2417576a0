package web

import (
	"context"
	"slices"
	"time"

	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

// Known is a dataset whose schema the program has. The catalogue does not have the functions that compute the buckets
// of rollups which are still open, so charts of other datasets are read from their points.
type Known interface {
	dataset() string
	// measured returns the numbers of the fields that have a measure of their name, and those of the others.
	measured(names []string) (with, without []int)
	// windows returns windows of one width of fields with measures, oldest first.
	windows(ctx context.Context, store *tsdb.Store, id tenant.ID, q linesQuery, width time.Duration) (windows, error)
}

// Knows returns a dataset of the program. The name of a measure is that of the field which it reads, with dots for
// nested ones; charts of it use the rollups that keep the minimum, the maximum and the mean of a measure of this name.
func Knows[T any](schema *tsdb.Schema[T], measures ...window.Measure[T]) Known {
	return known[T]{schema, slices.Clone(measures)}
}

type known[T any] struct {
	schema   *tsdb.Schema[T]
	measures []window.Measure[T]
}

func (k known[T]) dataset() string { return k.schema.Name() }

func (k known[T]) find(name string) int {
	return slices.IndexFunc(k.measures, func(m window.Measure[T]) bool { return m.Name == name && m.Text == nil })
}

func (k known[T]) measured(names []string) (with, without []int) {
	for i, name := range names {
		if k.find(name) >= 0 {
			with = append(with, i)
		} else {
			without = append(without, i)
		}
	}
	return with, without
}

func (k known[T]) windows(ctx context.Context, store *tsdb.Store, id tenant.ID, q linesQuery, width time.Duration) (found windows, err error) {
	measures := make([]window.Measure[T], len(q.names))
	for i, name := range q.names {
		measures[i] = k.measures[k.find(name)]
		measures[i].Aggregates = window.Basic
	}
	grid := gridOf(width)
	by, err := window.New(grid, measures, window.Options{})
	if err != nil {
		return found, err
	}
	from, to := grid.Start(q.from), grid.Start(q.to)
	if to.Before(q.to) {
		to = grid.Next(to)
	}
	repo, in := k.schema.For(store, id), tsdb.Between(from, to)
	found.from, found.to = from, to
	found.rollup, err = by.Source(ctx, repo, in)
	found.buckets = by.Read(ctx, repo, q.entity, in, tsdb.OldestFirst)
	return found, err
}
