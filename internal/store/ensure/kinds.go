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

// misfit looks at every entity of a dataset, of all tenants, and returns what is wrong with the first one that has a part which
// the kind of its field does not write; "" where there is none.
func (e *Ensurer) misfit(ctx context.Context, d *dataset.Dataset) (string, error) {
	all := rowkey.TenantsAfter(tenant.ID{})
	for !all.Empty() {
		rows, last := 0, ""
		var bad error
		read := bt.Scan{Rows: bigtable.NewRange(all.Start, all.Limit), Filter: dataset.KeysOnly(), Limit: kindRows}
		err := e.Table.Whole.Read(ctx, read, func(row bigtable.Row) bool {
			rows, last = rows+1, row.Key()
			if last < all.Start || bad != nil {
				return bad == nil // of an entity, a dataset or a tenant that is passed over
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

// kindRows is how many keys are read at once: many where entities have few rows, and few of the rows that can be passed over.
const kindRows = 100
