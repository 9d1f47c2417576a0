package tsdb

import (
	"context"
	"errors"
	"fmt"

	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/store/ensure"
	"github.com/tidemark-go/tidemark/internal/store/rowkey"
	"github.com/tidemark-go/tidemark/internal/store/tenancy"
	"github.com/tidemark-go/tidemark/internal/telemetry"
	"github.com/tidemark-go/tidemark/tenant"
)

// EnsureView creates a tenant's authorized view, or adds the families that it lacks for the datasets. The view covers
// the tenant's rows and all columns of the families, and nothing else. If nothing is missing, it writes nothing. A
// store with StoreOptions.Views needs it, after Ensure: for each new tenant, and for all tenants when a schema gains a
// class. The service refuses what a view does not cover, or returns nothing for it. A store without Views can call it
// too, to create all views before programs use them.
//
// It never removes anything. If the existing view covers other rows, or only some columns of a family, the error is a
// *ConflictError. It does not change the view's deletion protection, which is off for a new view, because it would also
// protect the table from deletion.
//
// It needs admin rights to read views, and to change them only if something is missing. It costs one request if nothing
// is. It retries temporary failures within the scan timeout. If two processes add families to one view at once, one may
// undo the other's change, because the service does not detect this. So each call checks the view again after its
// change; a view that is complete at the last check of the last call stays complete. It fails if the store has no admin
// client. Errors match ErrNoTable, ErrInvalid, tenant.ErrInvalid, ErrErased for an erased tenant, or ErrTenantMismatch
// if ctx carries another tenant.
func (s *Store) EnsureView(ctx context.Context, id tenant.ID, datasets ...Dataset) (err error) {
	ctx, op := s.begin(ctx, telemetry.EnsureView)
	defer func() { op.End(err) }()
	if err := s.admit(); err != nil {
		return err
	}
	if len(datasets) == 0 {
		return invalid.New(ErrInvalid, "datasets", "none", "at least one")
	}
	shapes, err := shapes(datasets)
	if err != nil {
		return err
	}
	space, err := rowkey.NewSpace(id, shapes[0].Name, shapes[0].Fields, shapes[0].Salts)
	if err != nil {
		return err
	}
	if have, ok := tenant.FromContext(ctx); ok && have != id {
		return fmt.Errorf("%w: %s, the view is of %s", ErrTenantMismatch, invalid.Quote(have.String()), id)
	}
	if err := s.core.Erased.Admit(ctx, id); err != nil {
		return err
	}
	admin, end, err := s.adminClient(ctx)
	if err != nil {
		return err
	}
	defer end()
	e := ensure.Ensurer{Table: s.core, Admin: admin}
	err = e.View(ctx, id, space.TenantPrefix(), shapes)
	if _, differs := errors.AsType[*ensure.Conflict](err); differs {
		return fmt.Errorf("tsdb: authorized view %s of table %s: %w", ViewID(id), s.core.Name, conflictOf(ctx, err))
	}
	return err
}

// ViewID returns the ID of a tenant's authorized view, for granting rights on it: "t-", up to 21 bytes of the tenant's
// name, "-", and 26 characters of a hash of the whole name. A tenant's ID never changes; that of the zero ID is "". It
// does no I/O.
func ViewID(id tenant.ID) string { return tenancy.ViewID(id) }
