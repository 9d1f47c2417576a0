package catalog

import (
	"context"
	"fmt"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/rowkey"
)

// mostListed bounds what List holds.
const mostListed = 10_000

// List returns every dataset of the catalogue, in the order of their names. It fails where there are more than 10,000.
func List(ctx context.Context, t *bt.Table) ([]Dataset, error) {
	var all []Dataset
	rng := rowkey.Datasets()
	for row, err := range t.Rows(ctx, bt.Scan{Rows: bigtable.NewRange(rng.Start, rng.Limit), Filter: bigtable.LatestNFilter(1), Long: true}) {
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
		if rowkey.DatasetRows+e.Name != row.Key() {
			return nil, fmt.Errorf("the catalogue's row %s is about the dataset %q", row.Key(), e.Name)
		}
		if len(all) == mostListed {
			return nil, fmt.Errorf("the catalogue has more than %d datasets", mostListed)
		}
		all = append(all, e.Dataset)
	}
	return all, nil
}
