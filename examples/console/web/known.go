package web

import (
	"context"
	"slices"

	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/chart"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

// Known is a dataset whose schema the program has. The catalogue does not have the functions that compute the buckets of rollups
// which are still open, so charts of other datasets are read from their points.
type Known interface {
	dataset() string
	// line returns the line of a field. It reports false if no measure has the field's name.
	line(ctx context.Context, store *tsdb.Store, id tenant.ID, q lineQuery) (chart.Line, bool, error)
}

// Knows returns a dataset of the program. The name of a measure is that of the field which it reads, with dots for nested ones; charts
// of it use the rollups that keep a measure of this name.
func Knows[T any](schema *tsdb.Schema[T], measures ...window.Measure[T]) Known {
	return known[T]{schema, slices.Clone(measures)}
}

type known[T any] struct {
	schema   *tsdb.Schema[T]
	measures []window.Measure[T]
}

func (k known[T]) dataset() string { return k.schema.Name() }

func (k known[T]) line(ctx context.Context, store *tsdb.Store, id tenant.ID, q lineQuery) (chart.Line, bool, error) {
	for _, m := range k.measures {
		if m.Name == q.field && m.Text == nil {
			line, err := chart.ReadM4(ctx, k.schema.For(store, id), q.entity, q.in, m, q.opts)
			return line, true, err
		}
	}
	return chart.Line{}, false, nil
}
