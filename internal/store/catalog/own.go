package catalog

import (
	"context"
	"iter"
	"slices"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/store/rowkey"
)

// ownRows returns the columns, a pattern, of the store's own rows with a prefix and some names, or all names if names
// is nil. An error is the last pair.
func ownRows(ctx context.Context, t *bt.Table, prefix string, names []string, columns string) iter.Seq2[*bt.Row, error] {
	filter := bigtable.ChainFilters(bigtable.FamilyFilter(Family), bigtable.ColumnFilter(columns), bigtable.LatestNFilter(1))
	if names == nil {
		return inRange(ctx, t, rowkey.OwnAfter(prefix, ""), bt.Scan{Filter: filter, Long: true})
	}
	keys := make(bigtable.RowList, len(names))
	for i, name := range names {
		keys[i] = prefix + name
	}
	return only(t.Rows(ctx, bt.Scan{Rows: keys, Filter: filter, Long: true}), func(key string) bool { return slices.Contains(keys, key) })
}

// inRange reads rows of a range. An error is the last pair.
func inRange(ctx context.Context, t *bt.Table, rng rowkey.Range, read bt.Scan) iter.Seq2[*bt.Row, error] {
	read.Rows = bigtable.NewRange(rng.Start, rng.Limit)
	return only(t.Rows(ctx, read), func(key string) bool { return key >= rng.Start && key < rng.Limit })
}

// only returns rows, and bt.ErrForeignRow for a row that was not asked for.
func only(rows iter.Seq2[*bt.Row, error], asked func(key string) bool) iter.Seq2[*bt.Row, error] {
	return func(yield func(*bt.Row, error) bool) {
		for row, err := range rows {
			if err == nil && !asked(row.Key()) {
				row, err = nil, bt.ErrForeignRow
			}
			if !yield(row, err) || err != nil {
				return
			}
		}
	}
}

// eachOf returns what parse finds in rows. It skips rows without, and ends with the error full if more than most have
// some.
func eachOf[T any](rows iter.Seq2[*bt.Row, error], most int, full error, parse func(*bt.Row) (T, bool)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		n := 0
		for row, err := range rows {
			var v T
			found := true
			switch {
			case err != nil:
			case n == most:
				err = full
			default:
				v, found = parse(row)
			}
			if !found {
				continue
			}
			n++
			if !yield(v, err) || err != nil {
				return
			}
		}
	}
}
