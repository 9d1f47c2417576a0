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
	if err := each(ctx, t, func(e Entry) { all = append(all, e.Dataset) }); err != nil {
		return nil, err
	}
	return all, nil
}

// LoadAll is Load for all datasets, in two requests. It fails as All does.
func LoadAll(ctx context.Context, t *bt.Table) (State, error) {
	st, err := Load(ctx, t, nil)
	if err != nil {
		return st, err
	}
	err = each(ctx, t, func(e Entry) { st.Datasets[e.Name] = e })
	return st, err
}

// each visits every entry of the catalogue.
func each(ctx context.Context, t *bt.Table, visit func(Entry)) error {
	n := 0
	rng := rowkey.OwnAfter(rowkey.DatasetRows, "")
	read := bt.Scan{Rows: bigtable.NewRange(rng.Start, rng.Limit), Filter: latest(), Limit: mostDatasets + 1, Long: true}
	for row, err := range t.Rows(ctx, read) {
		if err != nil {
			return err
		}
		if row.Key() < rng.Start || row.Key() >= rng.Limit {
			return bt.ErrForeignRow
		}
		e, err := parseEntry(row)
		if err != nil {
			return err
		}
		switch name := strings.TrimPrefix(row.Key(), rowkey.DatasetRows); {
		case e.Name != name:
			return fmt.Errorf("the catalogue's row %s is of dataset %s", row.Key(), invalid.Quote(e.Name))
		case n == mostDatasets:
			return errManyDatasets
		}
		n++
		visit(e)
	}
	return nil
}
