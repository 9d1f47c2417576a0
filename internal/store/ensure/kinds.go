package ensure

import (
	"context"
	"fmt"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/store/dataset"
	"github.com/tidemark-go/tidemark/internal/store/rowkey"
	"github.com/tidemark-go/tidemark/tenant"
)

// firstMisfit looks at every entity of a dataset, of all tenants. It returns why the first entity does not fit the
// kinds of its fields, or "" if all fit.
func (e *Ensurer) firstMisfit(ctx context.Context, d *dataset.Dataset) (string, error) {
	all := rowkey.TenantsAfter(tenant.ID{})
	for !all.Empty() {
		rows, last := 0, ""
		var bad error
		read := bt.Scan{Rows: bigtable.NewRange(all.Start, all.Limit), Filter: bt.KeysOnly(), Limit: kindRows}
		err := e.Table.Whole.Read(ctx, read, func(row *bt.Row) bool {
			rows, last = rows+1, row.Key()
			if last < all.Start || bad != nil {
				return bad == nil // of an entity, a dataset or a tenant that can be skipped
			}
			all.Start, bad = d.NextEntity(last)
			return bad == nil
		})
		switch {
		case err != nil:
			return "", fmt.Errorf("tsdb: compare the keys of dataset %s with the kinds of its fields: %w", d.Name, e.Table.Explain(err))
		case bad != nil:
			return fmt.Sprintf("dataset %s: kinds of key fields declared as %s, stored as text: %v", d.Name, d.EntryKinds(), bad), nil
		case rows < kindRows:
			return "", nil
		}
	}
	return "", nil
}

// kindRows is how many keys are read at once: many if entities have few rows, but few of the rows that can be skipped.
const kindRows = 100
