package catalog

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/rowkey"
)

// mostDatasets bounds what All holds.
const mostDatasets = 10_000

var errManyDatasets = errors.New("tsdb: the catalogue has more than 10,000 datasets")

// All returns every dataset of the catalogue, in the order of their names. Where there are more than 10,000, or an entry is
// of another dataset than its row, its error says so: whoever asks for all must not go on with some.
func All(ctx context.Context, t *bt.Table) ([]Dataset, error) {
	var all []Dataset
	rng := rowkey.OwnAfter(rowkey.DatasetRows, "")
	read := bt.Scan{Rows: bigtable.NewRange(rng.Start, rng.Limit), Filter: latest(), Limit: mostDatasets + 1, Long: true}
	for row, err := range t.Rows(ctx, read) {
		if err != nil {
			return nil, err
		}
		if row.Key() < rng.Start || row.Key() >= rng.Limit {
			return nil, bt.ErrForeignRow
		}
		e, err := parseEntry(row)
		if err != nil {
			return nil, err
		}
		switch name := strings.TrimPrefix(row.Key(), rowkey.DatasetRows); {
		case e.Name != name:
			return nil, fmt.Errorf("the catalogue's row %s is of dataset %s", row.Key(), invalid.Quote(e.Name))
		case len(all) == mostDatasets:
			return nil, errManyDatasets
		}
		all = append(all, e.Dataset)
	}
	return all, nil
}
