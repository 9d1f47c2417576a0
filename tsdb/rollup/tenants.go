package rollup

import (
	"context"
	"iter"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/rowkey"
	"github.com/tidemark-go/tidemark/tenant"
)

// tenants returns those to work on: all that the table has, by one small request each, where the options name none.
func (w *Worker) tenants(ctx context.Context) iter.Seq2[tenant.ID, error] {
	if w.opts.Tenants != nil {
		return w.opts.Tenants(ctx)
	}
	filter := bigtable.ChainFilters(bigtable.CellsPerRowLimitFilter(1), bigtable.StripValueFilter())
	return func(yield func(tenant.ID, error) bool) {
		rng := rowkey.TenantsAfter(tenant.ID{})
		for {
			found := ""
			err := w.in.Table.Read(ctx, bt.Scan{Rows: bigtable.NewRange(rng.Start, rng.Limit), Filter: filter, Limit: 1}, func(row bigtable.Row) bool {
				found = row.Key()
				return false
			})
			if err != nil {
				yield(tenant.ID{}, w.in.Explain(err))
				return
			}
			if found == "" {
				return
			}
			id, ok := rowkey.TenantOf(found)
			if !ok {
				rng = rng.After(found) // another program's
				continue
			}
			if !yield(id, nil) {
				return
			}
			rng = rowkey.TenantsAfter(id)
		}
	}
}
