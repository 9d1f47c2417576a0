package catalog

import (
	"context"

	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/store/rowkey"
	"github.com/tidemark-go/tidemark/tenant"
)

// loadPage is how many entries one request loads by name.
const loadPage = 100

// DatasetsOf returns the entries of the datasets of which a tenant has rows, ordered by name. It reads one row of each
// dataset and skips the others. rows is the table as the tenant sees it. DatasetsOf ignores rows of datasets that the
// catalogue does not have.
func DatasetsOf(ctx context.Context, own, rows *bt.Table, id tenant.ID) (all []Dataset, err error) {
	rng, err := rowkey.TenantRange(id)
	if err != nil {
		return nil, err
	}
	var names []string
	load := func() error {
		st, err := Load(ctx, own, names)
		for _, name := range names {
			if e, ok := st.Datasets[name]; ok {
				all = append(all, e.Dataset)
			}
		}
		names = names[:0]
		return err
	}
	for most := int64(1); !rng.Empty(); {
		last, n, name := "", int64(0), ""
		for row, err := range inRange(ctx, rows, rng, bt.Scan{Filter: bt.KeysOnly(), Limit: most, Long: most > 1}) {
			if err != nil {
				return nil, err
			}
			last = row.Key()
			n++
			if dataset, _, ok := rowkey.KindOf(last); ok {
				name = dataset
				break
			}
		}
		switch {
		case name != "":
			space, err := rowkey.NewSpace(id, name, nil, 0)
			if err != nil {
				return nil, err
			}
			names, rng.Start, most = append(names, name), space.All().Limit, 1
		case n < most:
			rng.Start = rng.Limit
		default: // of another program, which may have many
			rng, most = rng.After(last), 1000
		}
		if len(names) == loadPage {
			if err := load(); err != nil {
				return nil, err
			}
		}
	}
	if len(names) > 0 {
		err = load()
	}
	return all, err
}
