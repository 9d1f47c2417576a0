package catalog

import (
	"context"
	"encoding/json"
	"iter"
	"slices"
	"strings"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/rowkey"
)

// TenantLimits are the limits in the profile of one tenant, as they are stored: none for nil.
type TenantLimits struct {
	Tenant string
	Limits json.RawMessage
}

// ProfileLimits returns the limits of all tenants whose profiles have some. A profile that does not decode has itself for limits,
// which are not valid then. An error is the last pair.
func ProfileLimits(ctx context.Context, t *bt.Table) iter.Seq2[TenantLimits, error] {
	rng := rowkey.OwnAfter(rowkey.ProfileRows, "")
	return readLimits(ctx, t, bigtable.NewRange(rng.Start, rng.Limit), func(key string) bool { return key >= rng.Start && key < rng.Limit })
}

// ProfileLimitsOf is ProfileLimits for some tenants.
func ProfileLimitsOf(ctx context.Context, t *bt.Table, names []string) iter.Seq2[TenantLimits, error] {
	keys := make(bigtable.RowList, len(names))
	for i, name := range names {
		keys[i] = rowkey.ProfileRows + name
	}
	return readLimits(ctx, t, keys, func(key string) bool { return slices.Contains(keys, key) })
}

func readLimits(ctx context.Context, t *bt.Table, rows bigtable.RowSet, asked func(key string) bool) iter.Seq2[TenantLimits, error] {
	return func(yield func(TenantLimits, error) bool) {
		filter := bigtable.ChainFilters(bigtable.FamilyFilter(Family), bigtable.ColumnFilter(columnDocument), bigtable.LatestNFilter(1))
		n := 0
		for row, err := range t.Rows(ctx, bt.Scan{Rows: rows, Filter: filter, Long: true}) {
			switch {
			case err != nil:
			case !asked(row.Key()):
				err = bt.ErrForeignRow
			case n == MostAssignments:
				err = errManyAssignments
			}
			if err != nil {
				yield(TenantLimits{}, err)
				return
			}
			var doc struct {
				Limits json.RawMessage `json:"limits"`
			}
			text := value(row, columnDocument)
			if err := json.Unmarshal(text, &doc); err != nil {
				doc.Limits = text
			}
			if len(doc.Limits) == 0 || string(doc.Limits) == "null" {
				continue
			}
			n++
			if !yield(TenantLimits{strings.TrimPrefix(row.Key(), rowkey.ProfileRows), doc.Limits}, nil) {
				return
			}
		}
	}
}
