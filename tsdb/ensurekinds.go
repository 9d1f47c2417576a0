package tsdb

import (
	"context"
	"fmt"
	"slices"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/store/catalog"
	"github.com/tidemark-go/tidemark/internal/store/rowkey"
	"github.com/tidemark-go/tidemark/tenant"
)

// addsKinds reports whether a dataset declares kinds of key fields where the catalogue knows text alone.
func addsKinds(declared, stored catalog.Dataset) bool {
	return len(declared.Kinds) > 0 && len(stored.Kinds) == 0 && slices.Equal(declared.Key, stored.Key)
}

// misfit looks at every entity of a dataset, of all tenants, and returns what is wrong with the first one that has a part which
// the kind of its field does not write; "" where there is none.
func (s *Store) misfit(ctx context.Context, d *dataset) (string, error) {
	all := rowkey.TenantsAfter(tenant.ID{})
	for !all.Empty() {
		rows, last := 0, ""
		var bad error
		read := bt.Scan{Rows: bigtable.NewRange(all.Start, all.Limit), Filter: keysOnly(), Limit: kindRows}
		err := s.whole.Read(ctx, read, func(row bigtable.Row) bool {
			rows, last = rows+1, row.Key()
			if last < all.Start || bad != nil {
				return bad == nil // of an entity, a dataset or a tenant that is passed over
			}
			all.Start, bad = d.passed(last)
			return bad == nil
		})
		switch {
		case err != nil:
			return "", fmt.Errorf("tsdb: compare the keys of dataset %s with the kinds of its fields: %w", d.name, s.explain(err))
		case bad != nil:
			return fmt.Sprintf("dataset %s: kinds of key fields declared as %s, stored as text: %v", d.name, d.entryKinds(), bad), nil
		case rows < kindRows:
			return "", nil
		}
	}
	return "", nil
}

// kindRows is how many keys are read at once: many where entities have few rows, and few of the rows that can be passed over.
const kindRows = 100

// passed returns the first key behind a row that can be of another entity of the dataset, and what is wrong with the entity
// that the row is of.
func (d *dataset) passed(key string) (next string, bad error) {
	next = key + "\x00"
	id, ok := rowkey.TenantOf(key)
	if !ok {
		return next, nil
	}
	space, err := d.space(id)
	if err != nil {
		return next, err
	}
	for _, part := range space.Starts() {
		switch {
		case key < part.Start:
			return part.Start, nil
		case key >= part.Limit:
			continue
		}
		if _, kind, ok := rowkey.KindOf(key); ok && kind != "" {
			space, _ = space.Reserved(kind)
		}
		path, _, ok := space.Split(key)
		if !ok {
			if path, ok = space.SplitEntity(key); !ok {
				return next, nil
			}
		}
		if err := space.CheckPath(path); err != nil {
			return next, fmt.Errorf("tenant %s: %w", id, err)
		}
		return space.Whole(path).Limit, nil
	}
	return rowkey.TenantsAfter(id).Start, nil
}
