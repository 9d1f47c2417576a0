package tenants

import (
	"context"

	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/store/catalog"
	"github.com/tidemark-go/tidemark/internal/telemetry"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
)

// Kept says how long a tenant's data in one dataset is kept, by the catalogue and the tenant's profile. Policies are
// in the syntax of gc.Parse: "maxage=30d", "never".
type Kept struct {
	Dataset string `json:"dataset"`
	// Class is the retention class in which the tenant's points are written, and Points is its policy. Points that
	// were written in another class expire by that class.
	Class  string `json:"class"`
	Points string `json:"points"`
	// Rollups are in the order of the catalogue, each with its own policy or the shorter age of
	// SchemaOptions.RollupAges.
	Rollups []KeptRollup `json:"rollups,omitempty"`
}

// KeptRollup says how long a tenant's buckets of one rollup are kept, from their start.
type KeptRollup struct {
	Name   string `json:"name"`
	Policy string `json:"policy"`
}

// KeptFor returns how long a tenant's data is kept in each dataset of the table, sorted by name, including datasets
// without data of the tenant. It is an operator's call: it lists all datasets, so it fails with
// tsdb.ErrTenantMismatch if ctx carries a tenant. A tenant without a profile is in each dataset's default class.
// KeptFor reads the profile, and the catalogue in pages of 1,000 datasets.
func KeptFor(ctx context.Context, store *tsdb.Store, id tenant.ID) (kept []Kept, err error) {
	ctx, r, op, err := enterForAll(ctx, store, telemetry.TenantProfile, id)
	defer func() { op.End(err) }()
	if err != nil {
		return nil, err
	}
	if id.IsZero() {
		return nil, invalid.New(tenant.ErrInvalid, "tenant", "empty", "a tenant from tenant.Parse")
	}
	_, p, err := r.profile(ctx, id)
	if err != nil {
		return nil, err
	}
	assigned := p.assignment()
	for d, err := range catalog.Each(ctx, r.Whole) {
		if err != nil {
			return nil, r.Explain(err)
		}
		k := d.Keeping(assigned.Of(d.Name))
		one := Kept{Dataset: d.Name, Class: k.Class, Points: k.Points}
		for _, u := range k.Rollups {
			one.Rollups = append(one.Rollups, KeptRollup{Name: u.Name, Policy: u.Policy})
		}
		kept = append(kept, one)
	}
	return kept, nil
}
