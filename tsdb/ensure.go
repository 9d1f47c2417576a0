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

	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/store/catalog"
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
	err = s.whole.Retry(ctx, func(ctx context.Context) (done bool, err error) { return s.ensureOnce(ctx, admin, shapes) })
	if err == nil {
		s.erased.early(ctx)
	}
	return err
}

// ensureOnce compares everything, then creates what is missing. It reports false where another process got in between.
func (s *Store) ensureOnce(ctx context.Context, admin *bigtable.AdminClient, shapes []*dataset) (done bool, err error) {
	families := families(shapes)
	info, err := admin.TableInfo(ctx, s.name)
	exists := status.Code(err) != codes.NotFound
	if err != nil && exists {
		return false, fmt.Errorf("tsdb: read table %s: %w", s.name, err)
	}
	var st catalog.State
	var diffs []string
	missing := families
	if exists {
		missing, diffs = compareFamilies(families, info)
		if _, none := missing[catalog.Family]; !none {
			if st, err = catalog.Load(ctx, s.whole.SingleCluster(), names(shapes)); err != nil {
				return false, fmt.Errorf("tsdb: read the catalogue of table %s: %w", s.name, err)
			}
			if err := deleted(st); err != nil {
				return false, err
			}
		}
	}
	diffs = append(diffs, compareFormat(st, false)...)
	var kinds []*dataset // to be added to the catalogue, if what is stored fits them
	for _, d := range shapes {
		if e, ok := st.Datasets[d.name]; ok {
			entry := d.entry()
			if addsKinds(entry, e.Dataset) {
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
		err = admin.CreateTableFromConf(ctx, &bigtable.TableConf{TableID: s.name, ColumnFamilies: missing})
		if status.Code(err) == codes.AlreadyExists {
			return false, nil
		}
		if err != nil {
			return false, fmt.Errorf("tsdb: create table %s: %w", s.name, err)
		}
	} else if again, err := s.createFamilies(ctx, admin, missing); again || err != nil {
		return false, err
	}
	return s.writeCatalog(ctx, shapes, st)
}

// createFamilies creates the families; again says that another process was faster with one of them.
func (s *Store) createFamilies(ctx context.Context, admin *bigtable.AdminClient, missing map[string]bigtable.Family) (again bool, err error) {
	for _, name := range slices.Sorted(maps.Keys(missing)) {
		err := admin.CreateColumnFamilyWithConfig(ctx, s.name, name, missing[name])
		if status.Code(err) == codes.AlreadyExists {
			again = true
			continue
		}
		if err != nil {
			return false, fmt.Errorf("tsdb: create family %s in table %s: %w", name, s.name, err)
		}
	}
	return again, nil
}

func (s *Store) writeCatalog(ctx context.Context, shapes []*dataset, st catalog.State) (done bool, err error) {
	if st.Format == 0 {
		written, err := catalog.WriteFormat(ctx, s.whole)
		if err != nil {
			return false, catalogError(s.name, err)
		}
		if !written {
			return false, nil // it may be of another version
		}
	}
	done, wrote := true, false
	for _, d := range shapes {
		old, ok := st.Datasets[d.name]
		if ok && d.entry().Same(old.Dataset) {
			continue
		}
		if u := d.probed(); u != nil {
			if seen, err := s.probe(ctx, u); err != nil || !seen {
				return false, err
			}
		}
		written, err := catalog.Write(ctx, s.whole, d.entry(), old)
		if err != nil {
			return false, catalogError(s.name, err)
		}
		done, wrote = done && written, true
	}
	if !done || !wrote {
		return done, nil
	}
	if st, err = catalog.Load(ctx, s.whole.SingleCluster(), names(shapes)); err != nil {
		return false, fmt.Errorf("tsdb: read the catalogue of table %s: %w", s.name, err)
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
	st, err := catalog.Load(ctx, s.whole, names(shapes))
	if err != nil {
		return fmt.Errorf("tsdb: read the catalogue: %w", s.explain(err))
	}
	if err := deleted(st); err != nil {
		return err
	}
	diffs := compareFormat(st, true)
	for _, d := range shapes {
		if e, ok := st.Datasets[d.name]; ok {
			diffs = append(diffs, d.entry().Differences(e.Dataset)...)
		} else {
			diffs = append(diffs, fmt.Sprintf("dataset %s: declared, but not in the catalogue", d.name))
		}
	}
	if len(diffs) > 0 {
		return &ConflictError{Differences: diffs}
	}
	s.erased.early(ctx)
	return nil
}

// shapes returns the datasets' shapes and refuses contradictions among them.
func shapes(datasets []Dataset) ([]*dataset, error) {
	out := make([]*dataset, 0, len(datasets))
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
	return out, checkTogether(out)
}

// checkTogether refuses datasets that contradict each other.
func checkTogether(all []*dataset) error {
	classes := map[string]class{}
	for i, d := range all {
		for _, other := range all[:i] {
			if other.name == d.name {
				return invalid.New(ErrInvalid, "dataset", invalid.Quote(d.name), "each name once")
			}
		}
		for _, c := range d.allClasses() {
			if other, ok := classes[c.Name]; ok && !other.Equal(c.Class) {
				return invalid.New(ErrInvalid, "retention class", invalid.Quote(c.Name),
					fmt.Sprintf("one policy, not both %q and %q", other.Policy, c.Policy))
			}
			classes[c.Name] = c
		}
	}
	return nil
}

func names(shapes []*dataset) []string {
	out := make([]string, len(shapes))
	for i, d := range shapes {
		out[i] = d.name
	}
	return out
}

// families returns the families that the datasets need, the store's own included.
func families(shapes []*dataset) map[string]bigtable.Family {
	out := map[string]bigtable.Family{catalog.Family: {GCPolicy: bigtable.MaxVersionsPolicy(1)}}
	for _, d := range shapes {
		d.headFamilies(out)
		d.rollupFamilies(out)
		if d.head.Only {
			continue
		}
		for _, c := range d.classes {
			out[c.Name] = bigtable.Family{GCPolicy: c.Policy.Bigtable()}
		}
	}
	return out
}

// compareFamilies returns the families that the table lacks, and how those that it has differ.
func compareFamilies(want map[string]bigtable.Family, info *bigtable.TableInfo) (missing map[string]bigtable.Family, diffs []string) {
	missing = maps.Clone(want)
	for _, have := range info.FamilyInfos {
		w, ok := want[have.Name]
		if !ok {
			continue
		}
		delete(missing, have.Name)
		if diff := compareType(have.Name, w.ValueType, have.ValueType); diff != "" {
			diffs = append(diffs, diff)
			continue
		}
		declared, err := gc.FromBigtable(w.GCPolicy)
		if err != nil {
			diffs = append(diffs, fmt.Sprintf("family %s: declared policy: %v", have.Name, err))
			continue
		}
		stored, err := gc.FromBigtable(have.FullGCPolicy)
		if err != nil {
			diffs = append(diffs, fmt.Sprintf("family %s: the table's policy %q: %v", have.Name, have.GCPolicy, err))
			continue
		}
		if !declared.Equal(stored) {
			diffs = append(diffs, fmt.Sprintf("family %s: policy declared as %q, the table has %q", have.Name, declared, stored))
		}
	}
	return missing, diffs
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
