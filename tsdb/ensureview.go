package tsdb

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"cloud.google.com/go/bigtable"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/store/catalog"
	"github.com/tidemark-go/tidemark/internal/store/dataset"
	"github.com/tidemark-go/tidemark/internal/store/rowkey"
	"github.com/tidemark-go/tidemark/internal/store/tenancy"
	"github.com/tidemark-go/tidemark/internal/telemetry"
	"github.com/tidemark-go/tidemark/tenant"
)

// EnsureView makes a tenant's authorized view fit the datasets: the rows of the tenant, in all columns of the families that
// the datasets use, and nothing else. It creates the view where there is none, and adds the families that it lacks; where
// nothing is missing it writes nothing. It is the wall of a store with Options.Views, and may be called on a store without
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
	e := ensurer{t: s.core, admin: admin}
	return conflictOf(e.view(ctx, id, space.TenantPrefix(), shapes))
}

// view makes a tenant's authorized view fit datasets.
func (e *ensurer) view(ctx context.Context, id tenant.ID, prefix string, shapes []*dataset.Dataset) error {
	families := dataset.FamiliesOf(shapes)
	delete(families, catalog.Family)
	v := viewEnsurer{admin: e.admin, table: e.t.Name, id: tenancy.ViewID(id), prefix: prefix, families: slices.Sorted(maps.Keys(families))}
	err := e.t.Whole.Retry(ctx, v.once)
	if _, differs := errors.AsType[*conflict](err); err == nil || differs {
		return err
	}
	if status.Code(err) == codes.NotFound {
		err = fmt.Errorf("%w: %w", ErrNoTable, err)
	}
	return fmt.Errorf("tsdb: authorized view %s of table %s: %w", v.id, e.t.Name, err)
}

// viewEnsurer makes one view fit.
type viewEnsurer struct {
	admin     *bigtable.AdminClient
	table, id string
	prefix    string
	families  []string
}

// once compares the view, and changes it where something is missing. It reports true where it has seen the view as it is
// to be: the client does not wait for a view to be created.
func (e *viewEnsurer) once(ctx context.Context) (done bool, err error) {
	have, err := e.read(ctx)
	if err != nil {
		return false, err
	}
	missing, err := e.compare(have)
	if err != nil || len(missing) == 0 {
		return err == nil, err
	}
	conf := bigtable.AuthorizedViewConf{TableID: e.table, AuthorizedViewID: e.id, AuthorizedView: e.with(have, missing)}
	if have == nil {
		err = e.admin.CreateAuthorizedView(ctx, &conf)
		if status.Code(err) == codes.AlreadyExists {
			return false, nil
		}
	} else {
		err = e.admin.UpdateAuthorizedView(ctx, bigtable.UpdateAuthorizedViewConf{AuthorizedViewConf: conf})
	}
	if err != nil {
		return false, err
	}
	if have, err = e.read(ctx); err != nil {
		return false, err
	}
	missing, err = e.compare(have)
	return err == nil && len(missing) == 0, err
}

// read returns what the view shows; nil where there is none.
func (e *viewEnsurer) read(ctx context.Context) (*bigtable.SubsetViewInfo, error) {
	info, err := e.admin.AuthorizedViewInfo(ctx, e.table, e.id)
	switch {
	case status.Code(err) == codes.NotFound:
		return nil, nil
	case err != nil:
		return nil, err
	}
	subset, ok := info.AuthorizedView.(*bigtable.SubsetViewInfo)
	if !ok {
		return &bigtable.SubsetViewInfo{}, nil // of a kind that this version does not know: no rows that are the tenant's
	}
	return subset, nil
}

// compare returns the families that the view lacks. Its error is a *conflict.
func (e *viewEnsurer) compare(have *bigtable.SubsetViewInfo) (missing []string, err error) {
	if have == nil {
		return e.families, nil
	}
	var diffs []string
	if len(have.RowPrefixes) != 1 || string(have.RowPrefixes[0]) != e.prefix {
		diffs = append(diffs, fmt.Sprintf("authorized view %s: shows the rows with the prefixes %q, must show those with %q", e.id, have.RowPrefixes, e.prefix))
	}
	for _, name := range e.families {
		subset, ok := have.FamilySubsets[name]
		switch {
		case !ok:
			missing = append(missing, name)
		case !slices.ContainsFunc(subset.QualifierPrefixes, func(p []byte) bool { return len(p) == 0 }):
			diffs = append(diffs, fmt.Sprintf("authorized view %s: shows some columns of the family %s, must show all", e.id, name))
		}
	}
	if len(diffs) > 0 {
		return nil, &conflict{differences: diffs}
	}
	return missing, nil
}

// with returns the view with the missing families.
func (e *viewEnsurer) with(have *bigtable.SubsetViewInfo, missing []string) *bigtable.SubsetViewConf {
	conf := &bigtable.SubsetViewConf{RowPrefixes: [][]byte{[]byte(e.prefix)}, FamilySubsets: map[string]bigtable.FamilySubset{}}
	if have != nil {
		maps.Copy(conf.FamilySubsets, have.FamilySubsets)
	}
	for _, name := range missing {
		conf.AddFamilySubsetQualifierPrefix(name, []byte{})
	}
	return conf
}
