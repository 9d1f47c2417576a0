package catalog

import (
	"context"
	"fmt"
	"iter"
	"strings"

	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/store/rowkey"
)

// page is the number of entries of one request.
const page = 1000

// Each returns every entry of the catalogue, ordered by name. It reads page by page, so it works for any number of
// entries. An error is the last pair. It also fails if an entry is damaged, or names another dataset than its row,
// because callers that need all entries must not continue with some.
func Each(ctx context.Context, t *bt.Table) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		stopped := false
		err := Walk(ctx, t, func(e Entry, damage error) bool {
			stopped = !yield(e, damage) || damage != nil
			return !stopped
		})
		if err != nil && !stopped {
			yield(Entry{}, err)
		}
	}
}

// Walk is Each for callers that can do without the entries that are damaged: it calls visit with the name and the error
// of such an entry, and continues until visit returns false.
func Walk(ctx context.Context, t *bt.Table, visit func(e Entry, damage error) bool) error {
	rng := rowkey.OwnAfter(rowkey.DatasetRows, "")
	for !rng.Empty() {
		n := 0
		for row, err := range inRange(ctx, t, rng, bt.Scan{Filter: latest(), Limit: page, Long: true}) {
			if err != nil {
				return err
			}
			n++
			rng.Start = row.Key() + "\x00"
			e, err := namedEntry(row)
			if err != nil {
				e = Entry{Dataset: Dataset{Name: strings.TrimPrefix(row.Key(), rowkey.DatasetRows)}}
			}
			if !visit(e, err) {
				return nil
			}
		}
		if n < page {
			return nil
		}
	}
	return nil
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
