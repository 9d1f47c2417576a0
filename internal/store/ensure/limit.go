package ensure

import (
	"context"
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tidemark-go/tidemark/internal/store/catalog"
	"github.com/tidemark-go/tidemark/internal/store/dataset"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tenant/limit"
)

// checkLimit refuses n more datasets for the tenant that the context carries, if there is one and its limit of datasets
// does not allow them.
func (e *Ensurer) checkLimit(ctx context.Context, n int) error {
	if n == 0 {
		return nil
	}
	id, most, err := e.limitOf(ctx)
	if err != nil || most == 0 {
		return err
	}
	return e.count(ctx, id, most, int64(n))
}

// limitOf returns the tenant that the context carries and its limit of datasets; 0 if there is no tenant or no limit.
func (e *Ensurer) limitOf(ctx context.Context) (id tenant.ID, most int64, err error) {
	id, ok := tenant.FromContext(ctx)
	if !ok {
		return id, 0, nil
	}
	if err := e.Table.KnowLimits(ctx, id); err != nil {
		return id, 0, err
	}
	return id, e.Table.Limits.Limits(id).Datasets, nil
}

// count refuses n more datasets for a tenant that may have most.
func (e *Ensurer) count(ctx context.Context, id tenant.ID, most, n int64) error {
	have, err := catalog.CountCreatedFor(ctx, e.Table.Whole.SingleCluster(), id, most)
	if status.Code(err) == codes.NotFound {
		have, err = 0, nil // there is no table yet; createEntry counts again
	}
	if err != nil {
		return fmt.Errorf("tsdb: count the datasets of tenant %s: %w", id, e.Table.Explain(err))
	}
	if have+n > most {
		return &limit.Error{ID: limit.Datasets, Tenant: id, Limit: most, Used: have + n}
	}
	return nil
}

// createEntry adds a dataset to the catalogue. It reports false if another process was faster. Calls for a tenant with
// a limit of datasets take turns, so that those at once do not exceed it.
func (e *Ensurer) createEntry(ctx context.Context, d *dataset.Dataset, st catalog.State) (bool, error) {
	id, most, err := e.limitOf(ctx)
	if err != nil {
		return false, err
	}
	if most > 0 {
		end, err := e.Creating.Take(ctx, id)
		if err != nil {
			return false, err
		}
		defer end()
		if err := e.count(ctx, id, most, 1); err != nil {
			return false, err
		}
	}
	written, err := catalog.Create(ctx, e.Table.Whole, d.ToCatalog(), id, st)
	if err != nil {
		return false, CatalogError(e.Table.Name, err)
	}
	return written, nil
}
