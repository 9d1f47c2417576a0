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
	err = s.core.Whole.Retry(ctx, func(ctx context.Context) (done bool, err error) { return s.ensureOnce(ctx, admin, shapes) })
	if err == nil {
		s.core.Erased.LoadSoon(ctx)
	}
	return err
}

// ensureOnce compares everything, then creates what is missing. It reports false where another process got in between.
func (s *Store) ensureOnce(ctx context.Context, admin *bigtable.AdminClient, shapes []*dataset.Dataset) (done bool, err error) {
	families := dataset.FamiliesOf(shapes)
	info, err := admin.TableInfo(ctx, s.core.Name)
	exists := status.Code(err) != codes.NotFound
	if err != nil && exists {
		return false, fmt.Errorf("tsdb: read table %s: %w", s.core.Name, err)
	}
	var st catalog.State
	var diffs []string
	missing := families
	if exists {
		missing, diffs = dataset.CompareFamilies(families, info)
		if _, none := missing[catalog.Family]; !none {
			if st, err = catalog.Load(ctx, s.core.Whole.SingleCluster(), dataset.Names(shapes)); err != nil {
				return false, fmt.Errorf("tsdb: read the catalogue of table %s: %w", s.core.Name, err)
			}
			if err := deleted(st); err != nil {
				return false, err
			}
		}
	}
	diffs = append(diffs, compareFormat(st, false)...)
	var kinds []*dataset.Dataset // to be added to the catalogue, if what is stored fits them
	for _, d := range shapes {
		if e, ok := st.Datasets[d.Name]; ok {
			entry := d.ToCatalog()
			if dataset.AddsKinds(entry, e.Dataset) {
				kinds = append(kinds, d)
				e.Kinds = entry.Kinds
			}
			diffs = append(diffs, entry.Conflicts(e.Dataset)...)
		}
	}
	for _, d := range kinds {
		if len(diffs) > 0 {
			break
		}
		diff, err := s.misfit(ctx, d)
		switch {
		case err != nil:
			return false, err
		case diff != "":
			diffs = append(diffs, diff)
		}
	}
	if len(diffs) > 0 {
		return false, &ConflictError{Differences: diffs}
	}
	if !exists {
		err = admin.CreateTableFromConf(ctx, &bigtable.TableConf{TableID: s.core.Name, ColumnFamilies: missing})
		if status.Code(err) == codes.AlreadyExists {
			return false, nil
		}
		if err != nil {
			return false, fmt.Errorf("tsdb: create table %s: %w", s.core.Name, err)
		}
	} else if again, err := s.createFamilies(ctx, admin, missing); again || err != nil {
		return false, err
	}
	return s.writeCatalog(ctx, shapes, st)
}

// createFamilies creates the families; again says that another process was faster with one of them.
func (s *Store) createFamilies(ctx context.Context, admin *bigtable.AdminClient, missing map[string]bigtable.Family) (again bool, err error) {
	for _, name := range slices.Sorted(maps.Keys(missing)) {
		err := admin.CreateColumnFamilyWithConfig(ctx, s.core.Name, name, missing[name])
		if status.Code(err) == codes.AlreadyExists {
			again = true
			continue
		}
		if err != nil {
			return false, fmt.Errorf("tsdb: create family %s in table %s: %w", name, s.core.Name, err)
		}
	}
	return again, nil
}

func (s *Store) writeCatalog(ctx context.Context, shapes []*dataset.Dataset, st catalog.State) (done bool, err error) {
	if st.Format == 0 {
		written, err := catalog.WriteFormat(ctx, s.core.Whole)
		if err != nil {
			return false, catalogError(s.core.Name, err)
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
			if seen, err := s.probe(ctx, u); err != nil || !seen {
				return false, err
			}
		}
		written, err := catalog.Write(ctx, s.core.Whole, d.ToCatalog(), old)
		if err != nil {
			return false, catalogError(s.core.Name, err)
		}
		done, wrote = done && written, true
	}
	if !done || !wrote {
		return done, nil
	}
	if st, err = catalog.Load(ctx, s.core.Whole.SingleCluster(), dataset.Names(shapes)); err != nil {
		return false, fmt.Errorf("tsdb: read the catalogue of table %s: %w", s.core.Name, err)
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
	st, err := catalog.Load(ctx, s.core.Whole, dataset.Names(shapes))
	if err != nil {
		return fmt.Errorf("tsdb: read the catalogue: %w", s.core.Explain(err))
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
		return &ConflictError{Differences: diffs}
	}
	s.core.Erased.LoadSoon(ctx)
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
