// Package ensure compares a table, its catalogue and its authorized views with what datasets need, and creates what is
// missing.
package ensure

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"cloud.google.com/go/bigtable"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/store/catalog"
	"github.com/tidemark-go/tidemark/internal/store/dataset"
	"github.com/tidemark-go/tidemark/internal/store/points"
	"github.com/tidemark-go/tidemark/internal/store/tenancy"
)

// Ensurer creates what datasets need in the table of a store.
type Ensurer struct {
	Table *points.Table
	Admin *bigtable.AdminClient
	// Creating is shared by the calls of a store: calls that create datasets for a tenant with a limit take turns.
	Creating *Turns
}

// Once compares everything, then creates what is missing. It returns false if another process changed something
// meanwhile.
func (e *Ensurer) Once(ctx context.Context, shapes []*dataset.Dataset) (done bool, err error) {
	families := dataset.FamiliesOf(shapes)
	info, err := e.Admin.TableInfo(ctx, e.Table.Name)
	exists := status.Code(err) != codes.NotFound
	if err != nil && exists {
		return false, fmt.Errorf("tsdb: read table %s: %w", e.Table.Name, err)
	}
	var st catalog.State
	var diffs []string
	missing := families
	if exists {
		missing, diffs = dataset.CompareFamilies(families, info)
		if _, none := missing[catalog.Family]; !none {
			if st, err = load(ctx, e.Table, e.Table.Whole.SingleCluster(), shapes); err != nil {
				return false, err
			}
		}
	}
	diffs = append(diffs, compareFormat(st, false)...)
	var kinds []*dataset.Dataset // to be added to the catalogue, if the stored rows fit them
	for _, d := range shapes {
		if have, ok := st.Datasets[d.Name]; ok {
			entry := d.ToCatalog()
			if dataset.AddsKinds(entry, have.Dataset) {
				kinds = append(kinds, d)
				have.Kinds = entry.Kinds
			}
			diffs = append(diffs, entry.Conflicts(have.Dataset)...)
			d.AlsoClear(have.FieldPaths())
		}
	}
	for _, d := range kinds {
		if len(diffs) > 0 {
			break
		}
		diff, err := e.firstMisfit(ctx, d)
		switch {
		case err != nil:
			return false, err
		case diff != "":
			diffs = append(diffs, diff)
		}
	}
	if len(diffs) > 0 {
		return false, &Conflict{Differences: diffs}
	}
	if err := e.checkLimit(ctx, len(shapes)-len(st.Datasets)); err != nil {
		return false, err
	}
	if !exists {
		err := e.Admin.CreateTableFromConf(ctx, &bigtable.TableConf{TableID: e.Table.Name, ColumnFamilies: missing})
		if status.Code(err) == codes.AlreadyExists {
			return false, nil
		}
		if err != nil {
			return false, fmt.Errorf("tsdb: create table %s: %w", e.Table.Name, err)
		}
	} else if again, err := e.createFamilies(ctx, missing); again || err != nil {
		return false, err
	}
	done, wrote, err := e.writeCatalog(ctx, shapes, st)
	if err != nil || !done || !wrote {
		return done, err
	}
	return e.stillExists(ctx, shapes)
}

// stillExists checks again, after entries were written, whether a dataset or the families of a class were removed
// meanwhile. A removal that began later finds the entries. It returns false if families are missing.
func (e *Ensurer) stillExists(ctx context.Context, shapes []*dataset.Dataset) (bool, error) {
	if _, err := load(ctx, e.Table, e.Table.Whole.SingleCluster(), shapes); err != nil {
		return false, err
	}
	info, err := e.Admin.TableInfo(ctx, e.Table.Name) // read after the catalogue, so that families removed by then are missing here
	if err != nil {
		return false, fmt.Errorf("tsdb: read table %s: %w", e.Table.Name, err)
	}
	missing, _ := dataset.CompareFamilies(dataset.FamiliesOf(shapes), info)
	return len(missing) == 0, nil
}

// createFamilies creates the families. again means that another process created one of them first.
func (e *Ensurer) createFamilies(ctx context.Context, missing map[string]bigtable.Family) (again bool, err error) {
	for _, name := range slices.Sorted(maps.Keys(missing)) {
		err := e.Admin.CreateColumnFamilyWithConfig(ctx, e.Table.Name, name, missing[name])
		if status.Code(err) == codes.AlreadyExists {
			again = true
			continue
		}
		if err != nil {
			return false, fmt.Errorf("tsdb: create family %s in table %s: %w", name, e.Table.Name, err)
		}
	}
	return again, nil
}

func (e *Ensurer) writeCatalog(ctx context.Context, shapes []*dataset.Dataset, st catalog.State) (done, wrote bool, err error) {
	if st.Format == 0 {
		written, err := catalog.WriteFormat(ctx, e.Table.Whole)
		if err != nil {
			return false, false, CatalogError(e.Table.Name, err)
		}
		if !written {
			return false, false, nil // the other process may have another version
		}
	}
	done = true
	for _, d := range shapes {
		old, ok := st.Datasets[d.Name]
		if ok && d.ToCatalog().Same(old.Dataset) {
			continue
		}
		if u := d.DependsOnConditionalAdditions(); u != nil {
			if seen, err := e.probe(ctx, u); err != nil || !seen {
				return false, false, err
			}
		}
		var written bool
		if ok {
			if written, err = catalog.Write(ctx, e.Table.Whole, d.ToCatalog(), old); err != nil {
				return false, false, CatalogError(e.Table.Name, err)
			}
		} else if written, err = e.createEntry(ctx, d, st); err != nil {
			return false, false, err
		}
		done, wrote = done && written, true
	}
	return done, wrote, nil
}

// load reads what the catalogue has of datasets through one of the table's clients. It refuses datasets that are deleted,
// and those with classes whose families are being removed.
func load(ctx context.Context, t *points.Table, through *bt.Table, shapes []*dataset.Dataset) (catalog.State, error) {
	st, err := catalog.Load(ctx, through, dataset.Names(shapes), dataset.ClassNames(shapes)...)
	switch {
	case err != nil:
		return st, fmt.Errorf("tsdb: read the catalogue: %w", t.Explain(err))
	case len(st.Removing) > 0:
		return st, fmt.Errorf("%w: %s; try again when the removal (tenants.Remove) has ended, or give it up with tenants.Release", tenancy.ErrRemoving, strings.Join(st.Removing, ", "))
	case len(st.Deleted) > 0:
		return st, fmt.Errorf("%w: %s; tenants.Release lets the name be used again", tenancy.ErrDatasetDeleted, strings.Join(st.Deleted, ", "))
	}
	return st, nil
}

// CatalogError returns the error of a write to the catalogue of a table.
func CatalogError(table string, err error) error {
	if status.Code(err) == codes.FailedPrecondition {
		return fmt.Errorf("tsdb: write the catalogue of table %s: conditional writes need an app profile with single-cluster routing (Config.ConditionalAppProfile): %w", table, err)
	}
	return fmt.Errorf("tsdb: write the catalogue of table %s: %w", table, err)
}

// Conflict lists how the table differs from the datasets' declarations.
type Conflict struct{ Differences []string }

// Error implements error.
func (c *Conflict) Error() string { return strings.Join(c.Differences, "; ") }

// Verify compares datasets with the catalogue. If they differ, its error is a *Conflict.
func Verify(ctx context.Context, t *points.Table, shapes []*dataset.Dataset) error {
	st, err := load(ctx, t, t.Whole, shapes)
	if err != nil {
		return err
	}
	diffs := compareFormat(st, true)
	for _, d := range shapes {
		if e, ok := st.Datasets[d.Name]; ok {
			d.AlsoClear(e.FieldPaths())
			diffs = append(diffs, d.ToCatalog().Differences(e.Dataset)...)
		} else {
			diffs = append(diffs, fmt.Sprintf("dataset %s: declared, but not in the catalogue", d.Name))
		}
	}
	if len(diffs) > 0 {
		return &Conflict{Differences: diffs}
	}
	return nil
}

// compareFormat reports a format that this version does not know, and a missing one if there must be one.
func compareFormat(st catalog.State, must bool) []string {
	switch {
	case st.Format > catalog.FormatVersion:
		return []string{fmt.Sprintf("stored format: the table has version %d, this program knows %d", st.Format, catalog.FormatVersion)}
	case must && st.Format == 0:
		return []string{"stored format: the table holds no store yet (Ensure makes one)"}
	}
	return nil
}
