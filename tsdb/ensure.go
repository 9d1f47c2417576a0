package tsdb

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"cloud.google.com/go/bigtable"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/store/catalog"
	"github.com/tidemark-go/tidemark/internal/store/dataset"
	"github.com/tidemark-go/tidemark/internal/store/points"
	"github.com/tidemark-go/tidemark/internal/telemetry"
)

// Ensure makes the table fit the datasets: it creates the table, the families of their retention classes and their
// entries in the catalogue, where those are missing, and compares the others. It is safe to call from many processes at
// once and at every start; where nothing is missing it writes nothing. A codec tag, a class or a rollup that a schema has newly
// added is added to the catalogue. A dataset that is deleted is refused with ErrDatasetDeleted until its name is released.
//
// Where something stored differs from what is declared it changes nothing and returns a *ConflictError, which lists all
// that differs. A family's policy is never changed: that may delete data. Package retention plans such changes, and makes
// them. Nothing is ever removed.
//
// Kinds of key fields are added to the catalogue where it knows text alone and every stored key fits them: it then reads the
// names of all entities of the dataset, of all tenants and past their views, 100 rows a request and no payload. Stop programs that declare text before:
// what they still write need not fit, and Verify and Ensure refuse them afterwards. No other change of a kind is possible.
//
// Before it notes rollups that depend on it, it tries on a row of its own whether the service takes additions in conditional
// writes and adds them up; otherwise its error is ErrNoConditionalAggregates.
//
// It needs the admin rights to read the table and, only where something is missing, to change it, and a profile for
// conditional writes. What fails and may succeed later is tried again, within the timeout of scans.
func (s *Store) Ensure(ctx context.Context, datasets ...Dataset) (err error) {
	ctx, op := s.begin(ctx, telemetry.Ensure)
	defer func() { op.End(err) }()
	if err := s.admit(); err != nil {
		return err
	}
	if s.admin == nil {
		return ErrNoAdmin
	}
	shapes, err := shapes(datasets)
	if err != nil {
		return err
	}
	if err := s.Ping(ctx); err != nil && !errors.Is(err, ErrNoTable) {
		return err // within the timeout of reads, not of everything below
	}
	admin, end, err := s.adminClient(ctx)
	if err != nil {
		return err
	}
	defer end()
	e := ensurer{t: s.core, admin: admin}
	err = s.core.Whole.Retry(ctx, func(ctx context.Context) (done bool, err error) { return e.once(ctx, shapes) })
	if err != nil {
		return conflictOf(err)
	}
	s.core.Erased.LoadSoon(ctx)
	return nil
}

// ensurer makes the table of a store fit datasets.
type ensurer struct {
	t     *points.Table
	admin *bigtable.AdminClient
}

// once compares everything, then creates what is missing. It reports false where another process got in between.
func (e *ensurer) once(ctx context.Context, shapes []*dataset.Dataset) (done bool, err error) {
	families := dataset.FamiliesOf(shapes)
	info, err := e.admin.TableInfo(ctx, e.t.Name)
	exists := status.Code(err) != codes.NotFound
	if err != nil && exists {
		return false, fmt.Errorf("tsdb: read table %s: %w", e.t.Name, err)
	}
	var st catalog.State
	var diffs []string
	missing := families
	if exists {
		missing, diffs = dataset.CompareFamilies(families, info)
		if _, none := missing[catalog.Family]; !none {
			if st, err = catalog.Load(ctx, e.t.Whole.SingleCluster(), dataset.Names(shapes)); err != nil {
				return false, fmt.Errorf("tsdb: read the catalogue of table %s: %w", e.t.Name, err)
			}
			if err := deleted(st); err != nil {
				return false, err
			}
		}
	}
	diffs = append(diffs, compareFormat(st, false)...)
	var kinds []*dataset.Dataset // to be added to the catalogue, if what is stored fits them
	for _, d := range shapes {
		if have, ok := st.Datasets[d.Name]; ok {
			entry := d.ToCatalog()
			if dataset.AddsKinds(entry, have.Dataset) {
				kinds = append(kinds, d)
				have.Kinds = entry.Kinds
			}
			diffs = append(diffs, entry.Conflicts(have.Dataset)...)
		}
	}
	for _, d := range kinds {
		if len(diffs) > 0 {
			break
		}
		diff, err := e.misfit(ctx, d)
		switch {
		case err != nil:
			return false, err
		case diff != "":
			diffs = append(diffs, diff)
		}
	}
	if len(diffs) > 0 {
		return false, &conflict{differences: diffs}
	}
	if !exists {
		err = e.admin.CreateTableFromConf(ctx, &bigtable.TableConf{TableID: e.t.Name, ColumnFamilies: missing})
		if status.Code(err) == codes.AlreadyExists {
			return false, nil
		}
		if err != nil {
			return false, fmt.Errorf("tsdb: create table %s: %w", e.t.Name, err)
		}
	} else if again, err := e.createFamilies(ctx, missing); again || err != nil {
		return false, err
	}
	return e.writeCatalog(ctx, shapes, st)
}

// createFamilies creates the families; again says that another process was faster with one of them.
func (e *ensurer) createFamilies(ctx context.Context, missing map[string]bigtable.Family) (again bool, err error) {
	for _, name := range slices.Sorted(maps.Keys(missing)) {
		err := e.admin.CreateColumnFamilyWithConfig(ctx, e.t.Name, name, missing[name])
		if status.Code(err) == codes.AlreadyExists {
			again = true
			continue
		}
		if err != nil {
			return false, fmt.Errorf("tsdb: create family %s in table %s: %w", name, e.t.Name, err)
		}
	}
	return again, nil
}

func (e *ensurer) writeCatalog(ctx context.Context, shapes []*dataset.Dataset, st catalog.State) (done bool, err error) {
	if st.Format == 0 {
		written, err := catalog.WriteFormat(ctx, e.t.Whole)
		if err != nil {
			return false, catalogError(e.t.Name, err)
		}
		if !written {
			return false, nil // it may be of another version
		}
	}
	done, wrote := true, false
	for _, d := range shapes {
		old, ok := st.Datasets[d.Name]
		if ok && d.ToCatalog().Same(old.Dataset) {
			continue
		}
		if u := d.DependsOnConditionalAdditions(); u != nil {
			if seen, err := e.probe(ctx, u); err != nil || !seen {
				return false, err
			}
		}
		written, err := catalog.Write(ctx, e.t.Whole, d.ToCatalog(), old)
		if err != nil {
			return false, catalogError(e.t.Name, err)
		}
		done, wrote = done && written, true
	}
	if !done || !wrote {
		return done, nil
	}
	if st, err = catalog.Load(ctx, e.t.Whole.SingleCluster(), dataset.Names(shapes)); err != nil {
		return false, fmt.Errorf("tsdb: read the catalogue of table %s: %w", e.t.Name, err)
	}
	return true, deleted(st) // since the marks were read
}

// deleted refuses datasets that are deleted.
func deleted(st catalog.State) error {
	if len(st.Deleted) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %s; tenants.Release lets the name be used again", ErrDatasetDeleted, strings.Join(st.Deleted, ", "))
}

func catalogError(table string, err error) error {
	if status.Code(err) == codes.FailedPrecondition {
		return fmt.Errorf("tsdb: write the catalogue of table %s: conditional writes need an app profile with single-cluster routing (Config.ConditionalAppProfile): %w", table, err)
	}
	return fmt.Errorf("tsdb: write the catalogue of table %s: %w", table, err)
}

// Verify compares the datasets with the catalogue and changes nothing, for programs without admin rights: one read.
// Whatever differs, or is missing because Ensure never ran with these schemas, comes back in a *ConflictError. It does not
// see the families' policies, which only admin rights show.
func (s *Store) Verify(ctx context.Context, datasets ...Dataset) (err error) {
	ctx, op := s.begin(ctx, telemetry.Verify)
	defer func() { op.End(err) }()
	if err := s.admit(); err != nil {
		return err
	}
	shapes, err := shapes(datasets)
	if err != nil {
		return err
	}
	if err := verify(ctx, s.core, shapes); err != nil {
		return conflictOf(err)
	}
	s.core.Erased.LoadSoon(ctx)
	return nil
}

// conflictOf returns the error of a call that compares schemas with the table.
func conflictOf(err error) error {
	if c, ok := errors.AsType[*conflict](err); ok {
		return &ConflictError{Differences: c.differences}
	}
	return err
}

// conflict says how the table differs from what datasets declare.
type conflict struct{ differences []string }

// Error implements error.
func (c *conflict) Error() string { return strings.Join(c.differences, "; ") }

// verify compares datasets with the catalogue. Its error is a *conflict where they differ.
func verify(ctx context.Context, t *points.Table, shapes []*dataset.Dataset) error {
	st, err := catalog.Load(ctx, t.Whole, dataset.Names(shapes))
	if err != nil {
		return fmt.Errorf("tsdb: read the catalogue: %w", t.Explain(err))
	}
	if err := deleted(st); err != nil {
		return err
	}
	diffs := compareFormat(st, true)
	for _, d := range shapes {
		if e, ok := st.Datasets[d.Name]; ok {
			diffs = append(diffs, d.ToCatalog().Differences(e.Dataset)...)
		} else {
			diffs = append(diffs, fmt.Sprintf("dataset %s: declared, but not in the catalogue", d.Name))
		}
	}
	if len(diffs) > 0 {
		return &conflict{differences: diffs}
	}
	return nil
}

// shapes returns the datasets' shapes and refuses contradictions among them.
func shapes(datasets []Dataset) ([]*dataset.Dataset, error) {
	out := make([]*dataset.Dataset, 0, len(datasets))
	for i, d := range datasets {
		if d == nil {
			return nil, invalid.New(ErrInvalid, "dataset "+strconv.Itoa(i), "nil", "a schema from Define")
		}
		shape := d.shape()
		if shape == nil {
			return nil, invalid.New(ErrInvalid, "dataset "+strconv.Itoa(i), "zero", "a schema from Define")
		}
		out = append(out, shape)
	}
	return out, dataset.CheckTogether(out)
}

// compareFormat reports a format that this version does not know, and a missing one where there must be one.
func compareFormat(st catalog.State, must bool) []string {
	switch {
	case st.Format > catalog.FormatVersion:
		return []string{fmt.Sprintf("stored format: the table has version %d, this program knows %d", st.Format, catalog.FormatVersion)}
	case must && st.Format == 0:
		return []string{"stored format: the table holds no store yet (Ensure makes one)"}
	}
	return nil
}
