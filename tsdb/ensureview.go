package tsdb

import (
	"context"
	"errors"
	"fmt"

	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/store/ensure"
	"github.com/tidemark-go/tidemark/internal/store/rowkey"
	"github.com/tidemark-go/tidemark/internal/telemetry"
	"github.com/tidemark-go/tidemark/tenant"
)

// EnsureView makes a tenant's authorized view fit the datasets: the rows of the tenant, in all columns of the families that
// the datasets use, and nothing else. It creates the view where there is none, and adds the families that it lacks; where
// nothing is missing it writes nothing. It is the wall of a store with StoreOptions.Views, and may be called on a store without
// them, to make the views of all tenants before they are put to use. It must follow Ensure, for each new tenant, and for
// all tenants when a schema has gained a class: the service refuses what a view does not cover, or shows it as absent.
//
// A view with that name that shows other rows, or only some columns of a family, is refused with a *ConflictError. Nothing
// is ever removed. A view's protection from deletion is left as it is, off for a new one: it would also keep the table
// from being deleted.
//
// It needs the admin rights to read views and, only where something is missing, to change them: one request where nothing
// is. What fails and may succeed later is tried again, within the timeout of scans. The service tells nobody that two
// processes add families to one view at the same time, so one may undo what the other has added a moment before; a view
// that is right by the last look of the last call stays so. Its error is ErrNoAdmin where the store has no admin client,
// and matches ErrNoTable, ErrInvalid, tenant.ErrInvalid, ErrErased for a tenant that is erased, or ErrTenantMismatch where ctx
// carries another tenant.
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
