package ensure

import (
	"context"
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tidemark-go/tidemark/internal/ctxerr"
	"github.com/tidemark-go/tidemark/internal/store/catalog"
	"github.com/tidemark-go/tidemark/internal/store/dataset"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tenant/limit"
)

// checkLimit refuses n more datasets for the tenant that the context carries, if there is one and its limit of datasets does not
// allow them. It returns that tenant.
func (e *Ensurer) checkLimit(ctx context.Context, n int) (tenant.ID, error) {
	id, ok := tenant.FromContext(ctx)
	if !ok || n == 0 {
		return id, nil
	}
	if err := e.Table.KnowLimits(ctx, id); err != nil {
		return id, err
	}
	most := e.Table.Limits.Limits(id).Datasets
	if most == 0 {
		return id, nil
	}
	have, err := catalog.CountCreatedFor(ctx, e.Table.Whole.SingleCluster(), id, most)
	if status.Code(err) == codes.NotFound {
		have, err = 0, nil // there is no table yet; createEntry counts again
	}
	if err != nil {
		return id, fmt.Errorf("tsdb: count the datasets of tenant %s: %w", id, e.Table.Explain(err))
	}
	if have+int64(n) > most {
		return id, &limit.Error{ID: limit.Datasets, Tenant: id, Limit: most, Used: have + int64(n)}
	}
	return id, nil
}

// createEntry adds a dataset to the catalogue. It reports false if another process was faster. Calls for tenants take turns, so
// that those of one tenant at once do not exceed its limit.
func (e *Ensurer) createEntry(ctx context.Context, d *dataset.Dataset, st catalog.State) (bool, error) {
	if _, ok := tenant.FromContext(ctx); ok {
		select {
		case e.Creating <- struct{}{}:
			defer func() { <-e.Creating }()
		case <-ctx.Done():
			return false, ctxerr.Of(ctx)
		}
	}
	id, err := e.checkLimit(ctx, 1)
	if err != nil {
		return false, err
	}
	written, err := catalog.Create(ctx, e.Table.Whole, d.ToCatalog(), id, st)
	if err != nil {
		return false, catalogError(e.Table.Name, err)
	}
	return written, nil
}
