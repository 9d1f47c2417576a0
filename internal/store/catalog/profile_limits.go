package catalog

import (
	"context"
	"encoding/json"
	"iter"
	"strings"

	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/store/rowkey"
)

// TenantLimits are the limits in one tenant's profile, as stored; nil means none.
type TenantLimits struct {
	Tenant string
	Limits json.RawMessage
}

// ProfileLimits returns the limits of some tenants, or all if names is nil, whose profiles have some. For a profile
// that does not decode, it returns the profile's text as the limits, which are then invalid. An error is the last pair.
func ProfileLimits(ctx context.Context, t *bt.Table, names []string) iter.Seq2[TenantLimits, error] {
	return eachOf(ownRows(ctx, t, rowkey.ProfileRows, names, columnDocument), MostAssignments, errManyAssignments, func(row *bt.Row) (TenantLimits, bool) {
		var doc struct {
			Limits json.RawMessage `json:"limits"`
		}
		text := value(row, columnDocument)
		if err := json.Unmarshal(text, &doc); err != nil {
			doc.Limits = text
		}
		given := len(doc.Limits) > 0 && string(doc.Limits) != "null"
		return TenantLimits{strings.TrimPrefix(row.Key(), rowkey.ProfileRows), doc.Limits}, given
	})
}
