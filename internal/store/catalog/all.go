package catalog

import (
	"context"
	"fmt"
	"iter"
	"strings"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/store/rowkey"
)

// page is the number of entries of one request.
const page = 1000

// Each returns every entry of the catalogue, ordered by name. It reads page by page, so it works for any number of
// entries. An error is the last pair. It also fails if an entry names another dataset than its row, because callers
// that need all entries must not continue with some.
func Each(ctx context.Context, t *bt.Table) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		rng := rowkey.OwnAfter(rowkey.DatasetRows, "")
		for !rng.Empty() {
			n := 0
			read := bt.Scan{Rows: bigtable.NewRange(rng.Start, rng.Limit), Filter: latest(), Limit: page, Long: true}
			for row, err := range t.Rows(ctx, read) {
				var e Entry
				if err == nil {
					e, err = entryIn(row, rng)
				}
				if !yield(e, err) || err != nil {
					return
				}
				n++
				rng.Start = row.Key() + "\x00"
			}
			if n < page {
				return
			}
		}
	}
}

// entryIn returns the entry in a row that was read from a range.
func entryIn(row *bt.Row, rng rowkey.Range) (Entry, error) {
	if row.Key() < rng.Start || row.Key() >= rng.Limit {
		return Entry{}, bt.ErrForeignRow
	}
	return namedEntry(row)
}

// namedEntry returns the entry in a row. It is an error if the entry names another dataset than its row.
func namedEntry(row *bt.Row) (Entry, error) {
	e, err := parseEntry(row)
	if err == nil && e.Name != strings.TrimPrefix(row.Key(), rowkey.DatasetRows) {
		err = fmt.Errorf("the catalogue's row %s is of dataset %s", row.Key(), invalid.Quote(e.Name))
	}
	return e, err
}

// LoadAll is Load for all datasets.
func LoadAll(ctx context.Context, t *bt.Table) (State, error) {
	st, err := Load(ctx, t, nil)
	if err != nil {
		return st, err
	}
	for e, err := range Each(ctx, t) {
		if err != nil {
			return st, err
		}
		st.Datasets[e.Name] = e
	}
	return st, nil
}
