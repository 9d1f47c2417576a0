package tsdb

import (
	"context"
	"errors"
	"strconv"

	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/store/dataset"
	"github.com/tidemark-go/tidemark/internal/store/ensure"
	"github.com/tidemark-go/tidemark/internal/telemetry"
	"github.com/tidemark-go/tidemark/tenant"
)

// Ensure makes the table fit the datasets: it creates the table, the families of their retention classes and their
// entries in the catalogue, where those are missing, and compares the others. It is safe to call from many processes at
// once and at every start; where nothing is missing it writes nothing. A codec tag, a class or a rollup that a schema has newly
// added is added to the catalogue. A dataset that is deleted is refused with ErrDatasetDeleted until its name is released, and
// one with a retention class whose families are being removed with ErrRemoving until the removal has ended.
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
// If ctx carries a tenant, datasets that are new to the catalogue are created for that tenant, and count towards its
// limit.Limits.Datasets. One that would exceed the limit is a *limit.Error; datasets that the same call has created before stay.
// Without a tenant, as in the call of a program for its own schemas, there is no limit. So a program in which tenants name datasets
// calls Ensure with the tenant's context. Processes that create datasets for one tenant at once may exceed its limit by one each.
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
	e := ensure.Ensurer{Table: s.core, Admin: admin, Creating: &s.creating}
	err = s.core.Whole.Retry(ctx, func(ctx context.Context) (done bool, err error) { return e.Once(ctx, shapes) })
	if err != nil {
		return conflictOf(ctx, err)
	}
	s.core.Erased.LoadSoon(ctx)
	return nil
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
	if err := ensure.Verify(ctx, s.core, shapes); err != nil {
		return conflictOf(ctx, err)
	}
	s.core.Erased.LoadSoon(ctx)
	return nil
}

// conflictOf returns the error of a call that compares schemas with the table.
func conflictOf(ctx context.Context, err error) error {
	if c, ok := errors.AsType[*ensure.Conflict](err); ok {
		_, outside := tenant.FromContext(ctx)
		return &ConflictError{Differences: c.Differences, outside: outside}
	}
	return err
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
