package tsdb

import (
	"context"
	"fmt"

	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/tenant"
)

// admitTenant refuses a call for a tenant that is not the context's.
func (s *tenancy) admitTenant(ctx context.Context, id tenant.ID) error {
	have, ok := tenant.FromContext(ctx)
	switch {
	case ok && have != id:
		return fmt.Errorf("%w: %s, the repository is of %s", ErrTenantMismatch, invalid.Quote(have.String()), id)
	case !ok && s.requireTenant:
		return fmt.Errorf("%w, and the store requires one", ErrNoTenant)
	}
	return nil
}

// admitOne refuses a call for a tenant that is not the context's, or is erased.
func (s *tenancy) admitOne(ctx context.Context, id tenant.ID) error {
	if err := s.admitTenant(ctx, id); err != nil {
		return err
	}
	return s.erased.admit(ctx, id)
}
