// Package inside gives the packages built on tsdb access to a store's table. Package tsdb sets the variables of this
// package when a program starts, and exports none of them, so no program outside of this module can call them. Callers
// keep tsdb's guarantees: they build keys and ranges with package rowkey and a validated tenant, and each returned row
// is checked against the requested range.
package inside

import (
	"context"
	"iter"
	"time"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/clock"
	"github.com/tidemark-go/tidemark/internal/store/catalog"
	"github.com/tidemark-go/tidemark/internal/store/dataset"
	"github.com/tidemark-go/tidemark/tenant"
)

// Store is the internals of a store.
type Store struct {
	Table *bt.Table // for the store's own rows, not those of tenants
	// For returns the table as a tenant may see it. All access to a tenant's rows uses it.
	For   func(tenant.ID) *bt.Table
	Name  string // of the table
	Alone bool   // no other store can have the table open
	// SetAlone sets Alone, for package embedded before it hands out the store.
	SetAlone func()
	Clock    func() time.Time
	// Admin returns an admin client, and the function that closes it. If the store has none, the error is
	// tsdb.ErrNoAdmin.
	Admin func(context.Context) (*bigtable.AdminClient, func(), error)
	// Explain adds the table to an error of the service, and names what is missing, if anything.
	Explain func(error) error
	// Admit refuses a call for a tenant that is not the context's or, with tsdb.ErrErased, that is erased. A caller
	// that writes rows of a tenant calls it before each request that writes, and again if the request is delayed.
	Admit func(context.Context, tenant.ID) error
	// Marks reads the current erasure marks and returns them from memory. The store applies them from then on.
	Marks func(context.Context) (iter.Seq[catalog.Mark], error)
	// Profiles reads the retention classes and limits in profiles again, if the store has read them before.
	Profiles func(context.Context) error
	// Entry returns the catalogue's entry of a dataset, at most some minutes old, or the zero Entry if there is none.
	Entry func(ctx context.Context, dataset string) (catalog.Entry, error)
	// Points returns a tenant's points of a dataset. Its error is tsdb.ErrTenantMismatch if ctx carries another tenant,
	// and tsdb.ErrErased if the tenant is erased.
	Points func(ctx context.Context, d catalog.Dataset, id tenant.ID) (Points, error)
	// Families returns the column families that datasets need, including the store's own, ordered by name. It returns
	// an error if this version cannot read an entry, or if datasets give one family two policies.
	Families func([]catalog.Dataset) ([]dataset.Family, error)
	// Ensure is tsdb.Store.Ensure for datasets without a schema.
	Ensure func(context.Context, []catalog.Dataset) error
	// Confirmed returns the time for deletions by age. If the clock is not trusted, its error is tsdb.ErrClock.
	Confirmed func(context.Context) (time.Time, error)
	// Earliest returns the earliest possible current time: treat what has not ended by then as in force.
	Earliest func() time.Time
	// WatchClock makes the store use the engine's watch over their common clock.
	WatchClock func(*clock.Watch)
}
