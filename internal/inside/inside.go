// Package inside is how the packages built on tsdb reach a store's table. Package tsdb puts functions in the variables of this
// package when a program starts, and exports none of them, so no program outside of this module can call them. Callers keep
// what tsdb promises: keys and ranges from package rowkey and a validated tenant, each row that comes back checked against the
// range that was asked for.
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

// Store is what is inside a store.
type Store struct {
	Table *bt.Table // for rows of the store itself, not of tenants
	// For returns the table as a tenant may see it. Each row of a tenant is reached through it.
	For   func(tenant.ID) *bt.Table
	Name  string // of the table
	Alone bool   // no other store can have the table open
	// SetAlone sets Alone, for package embedded before it hands out the store.
	SetAlone func()
	Clock    func() time.Time
	// Admin returns an admin client, and what ends it; its error is tsdb.ErrNoAdmin where the store has none.
	Admin func(context.Context) (*bigtable.AdminClient, func(), error)
	// Explain adds the table, and what is missing where something is, to what the service answered.
	Explain func(error) error
	// Admit refuses what is to be read or written for a tenant that is not the context's, or, with tsdb.ErrErased, that is
	// erased. Whoever writes rows of a tenant asks it before each request that writes, and again where the request is put off.
	Admit func(context.Context, tenant.ID) error
	// Marks reads the erasure marks as they are now, so that the store applies them from then on, and returns them from memory.
	Marks func(context.Context) (iter.Seq[catalog.Mark], error)
	// Profiles reads the retention classes and limits in profiles as they are now, where the store has read them before.
	Profiles func(context.Context) error
	// Entry returns the catalogue's entry of a dataset, at most some minutes old; the zero Entry for none.
	Entry func(ctx context.Context, dataset string) (catalog.Entry, error)
	// Points returns a tenant's points of a dataset. Its error is tsdb.ErrTenantMismatch where ctx carries another tenant, and
	// tsdb.ErrErased where the tenant is erased.
	Points func(ctx context.Context, d catalog.Dataset, id tenant.ID) (Points, error)
	// Families returns the column families that datasets need, the store's own included, in the order of their names. Its error
	// is what makes an entry none of this version's, or datasets that give a family two policies.
	Families func([]catalog.Dataset) ([]dataset.Family, error)
	// Ensure is tsdb.Store.Ensure for datasets of which there is no schema.
	Ensure func(context.Context, []catalog.Dataset) error
	// Confirmed returns the time to delete by. Its error is tsdb.ErrClock where the clock is not believed.
	Confirmed func(context.Context) (time.Time, error)
	// Earliest is the earliest that it may be now: what has not ended by then is treated as in force.
	Earliest func() time.Time
	// WatchClock makes the store go by the engine's watch over the clock that both have.
	WatchClock func(*clock.Watch)
}
