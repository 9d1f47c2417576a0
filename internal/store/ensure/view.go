package ensure

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"cloud.google.com/go/bigtable"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tidemark-go/tidemark/internal/store/catalog"
	"github.com/tidemark-go/tidemark/internal/store/dataset"
	"github.com/tidemark-go/tidemark/internal/store/tenancy"
	"github.com/tidemark-go/tidemark/tenant"
)

// View creates or completes a tenant's authorized view for datasets.
func (e *Ensurer) View(ctx context.Context, id tenant.ID, prefix string, shapes []*dataset.Dataset) error {
	families := dataset.FamiliesOf(shapes)
	delete(families, catalog.Family)
	v := viewEnsurer{admin: e.Admin, table: e.Table.Name, id: tenancy.ViewID(id), prefix: prefix, families: slices.Sorted(maps.Keys(families))}
	err := e.Table.Whole.Retry(ctx, v.once)
	if _, differs := errors.AsType[*Conflict](err); err == nil || differs {
		return err
	}
	if status.Code(err) == codes.NotFound {
		err = fmt.Errorf("%w: %w", tenancy.ErrNoTable, err)
	}
	return fmt.Errorf("tsdb: authorized view %s of table %s: %w", v.id, e.Table.Name, err)
}

// viewEnsurer creates or completes one view.
type viewEnsurer struct {
	admin     *bigtable.AdminClient
	table, id string
	prefix    string
	families  []string
}

// once compares the view, and changes it if something is missing. It returns true if the view is complete: the client
// does not wait for the creation of a view.
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

// read returns what the view shows, or nil if it does not exist.
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
		return &bigtable.SubsetViewInfo{}, nil // an unknown kind of view: it shows none of the tenant's rows
	}
	return subset, nil
}

// compare returns the families that the view lacks. Its error is a *Conflict.
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
		return nil, &Conflict{Differences: diffs}
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
