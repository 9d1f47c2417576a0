package tenants

import (
	"context"
	"iter"

	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
)

// Tenant is one tenant of a table.
type Tenant struct {
	ID tenant.ID `json:"tenant"`
	// Profile is nil where the tenant was never onboarded.
	Profile *Profile `json:"profile,omitempty"`
	// Rows says whether there are any rows of the tenant in datasets of the catalogue, those of expired points included.
	Rows bool `json:"rows"`
	// Erased is how far the tenant's erasure is; empty for a tenant that is not erased.
	Erased State `json:"erased,omitempty"`
}

// ListOptions are what a listing may decide. The zero value lists all tenants.
type ListOptions struct {
	// After continues behind that tenant, in the order of List.
	After tenant.ID
	// ProfilesOnly lists the tenants with a profile or an erasure mark, one request for many of them, and does not look for
	// rows: Rows is false.
	ProfilesOnly bool
}

// List returns the tenants of a table in the order of their names' bytes: those that have rows, a profile, or an erasure mark.
// There is no index of them: it finds the first row of each and goes on behind its last, so it costs one small request a
// tenant, however much each has stored, and one for every 1,000 profiles and marks. Rows of other programs are passed over.
//
// Tenants that come and go while it runs may or may not show. An error is the last pair. It is bounded by ctx, and each
// request by the timeout of reads.
func List(ctx context.Context, store *tsdb.Store, opts ListOptions) iter.Seq2[Tenant, error] {
	panic("to come")
}
