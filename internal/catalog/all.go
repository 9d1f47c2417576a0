package catalog

import (
	"context"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/rowkey"
)

// mostDatasets bounds what All holds.
const mostDatasets = 10_000

// All returns every dataset of the catalogue, in the order of their names, up to 10,000.
func All(ctx context.Context, t *bt.Table) ([]Dataset, error) {
	var all []Dataset
	rng := rowkey.OwnAfter(rowkey.DatasetRows, "")
	read := bt.Scan{Rows: bigtable.NewRange(rng.Start, rng.Limit), Filter: latest(), Limit: mostDatasets, Long: true}
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
		all = append(all, e.Dataset)
	}
	return all, nil
}
