package rollup

import (
	"context"
	"fmt"
	"iter"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/rowkey"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
)

// aside is how many rows of other programs are passed over at once.
const aside = 1000

// tenants returns those to work on: all that the table has, by one small request each, where the options name none.
func (w *Worker) tenants(ctx context.Context) iter.Seq2[tenant.ID, error] {
	if w.opts.Tenants != nil {
		if named := w.opts.Tenants(ctx); named != nil {
			return named
		}
		return func(func(tenant.ID, error) bool) {}
	}
	filter := bigtable.ChainFilters(bigtable.CellsPerRowLimitFilter(1), bigtable.StripValueFilter())
	return func(yield func(tenant.ID, error) bool) {
		rng, most := rowkey.TenantsAfter(tenant.ID{}), int64(1)
		for !rng.Empty() {
			last, id, foreign := "", tenant.ID{}, false
			err := w.in.Table.Read(ctx, bt.Scan{Rows: bigtable.NewRange(rng.Start, rng.Limit), Filter: filter, Limit: most}, func(row bigtable.Row) bool {
				last = row.Key()
				if foreign = last < rng.Start || last >= rng.Limit; foreign {
					return false
				}
				of, ok := rowkey.TenantOf(last)
				if ok {
					id = of
				}
				return !ok
			})
			switch {
			case foreign:
				err = fmt.Errorf("%w: tenants", tsdb.ErrForeignRow)
			case err != nil:
				err = w.in.Explain(err)
			case last == "":
				return
			case id.IsZero():
				rng, most = rng.After(last), aside
				continue
			}
			if !yield(id, err) || err != nil {
				return
			}
			rng, most = rowkey.TenantsAfter(id), 1
		}
	}
}
