package inside

import (
	"context"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/internal/store/catalog"
	"github.com/tidemark-go/tidemark/internal/store/points"
)

// Store is the internals of a store. A caller that writes rows of a tenant calls Admit before each request that writes,
// and again if the request is delayed.
type Store struct {
	*points.Table
	// Admin returns an admin client, and the function that closes it. If the store has none, the error is
	// tenancy.ErrNoAdmin.
	Admin func(context.Context) (*bigtable.AdminClient, func(), error)
	// Ensure is tsdb.Store.Ensure for datasets without a schema.
	Ensure func(context.Context, []catalog.Dataset) error
}
