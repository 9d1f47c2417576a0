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

// ProfileLimits returns the limits of all tenants whose profiles have some. For a profile that does not decode, it
// returns the profile's text as the limits, which are then invalid. An error is the last pair.
func ProfileLimits(ctx context.Context, t *bt.Table) iter.Seq2[TenantLimits, error] {
	return limitsIn(profiles(ctx, t, columnDocument))
}

// ProfileLimitsOf is ProfileLimits for some tenants.
func ProfileLimitsOf(ctx context.Context, t *bt.Table, names []string) iter.Seq2[TenantLimits, error] {
	return limitsIn(profilesOf(ctx, t, names, columnDocument))
}

func limitsIn(rows iter.Seq2[*bt.Row, error]) iter.Seq2[TenantLimits, error] {
	return func(yield func(TenantLimits, error) bool) {
		n := 0
		for row, err := range rows {
			if err == nil && n == MostAssignments {
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
