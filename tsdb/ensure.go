package tsdb

import (
	"context"
	"errors"
	"strconv"

	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/store/dataset"
	"github.com/tidemark-go/tidemark/internal/store/ensure"
	"github.com/tidemark-go/tidemark/internal/store/tenancy"
	"github.com/tidemark-go/tidemark/internal/telemetry"
	"github.com/tidemark-go/tidemark/tenant"
)

// Ensure creates what the table lacks for the datasets: the table, the column families of their retention classes, and
// their entries in the catalogue, including new codec tags, classes, rollups, and measures that were added to rollups.
// It compares the rest. Call it at every start; many processes may call it at once. If nothing is missing, it writes
// nothing.
//
// It never removes anything, and never changes a family's policy, because that may delete data: package retention plans
// and makes such changes. If anything stored differs from the schemas, it changes nothing and returns a *ConflictError
// that lists all differences. Other errors:
//
//   - An error if the store has no admin client.
//   - ErrErased for a deleted dataset, until its name is released.
//   - ErrRemoving if families of a retention class are being removed, until the removal has ended. If that removal began during
//     the call, the catalogue may already have the dataset, without families: until Ensure succeeds, writes fail with ErrNoTable.
//   - An error if a rollup needs conditional additions and the service does not support them. Ensure tests
//     this on a row of its own before it adds the rollup.
//   - A *limit.Error if ctx carries a tenant and the call would exceed its limit.Limits.Datasets. Datasets that are new to
//     the catalogue count towards that tenant; without a tenant there is no limit. So pass the tenant's context if tenants choose
//     datasets' names. Datasets that the call has already created remain. Concurrent processes may each exceed the limit by one.
//
// If the catalogue has only text fields, Ensure can add kinds of key fields, provided that every stored key fits: it
// reads all entity names of the dataset, of all tenants and without their views, 100 rows per request, without
// payloads. First stop all programs that declare text: if they write keys that do not fit, Verify and Ensure fail
// afterwards. No other change of a kind is possible.
//
// Ensure needs admin rights to read the table, and to change it only if something is missing, and an app profile for
// conditional writes. It retries temporary failures within the scan timeout.
func (s *Store) Ensure(ctx context.Context, datasets ...Dataset) (err error) {
	ctx, op := s.begin(ctx, telemetry.Ensure)
	defer func() { op.End(err) }()
	if err := s.admit(); err != nil {
		return err
	}
	if s.admin == nil {
		return tenancy.ErrNoAdmin
	}
	shapes, err := shapes(datasets)
	if err != nil {
		return err
	}
	if err := s.Ping(ctx); err != nil && !errors.Is(err, ErrNoTable) {
		return err // fails within the read timeout, before the scan timeout of the rest applies
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

// Verify compares the datasets with the catalogue and changes nothing. It needs no admin rights and costs one read. It
// returns a *ConflictError that lists what differs or is missing, or ErrErased or ErrRemoving, as Ensure does. It
// cannot see the policies of families, which only admins can read.
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

// conflictOf converts a conflict of package ensure to a *ConflictError.
func conflictOf(ctx context.Context, err error) error {
	if c, ok := errors.AsType[*ensure.Conflict](err); ok {
		_, outside := tenant.FromContext(ctx)
		return &ConflictError{Differences: c.Differences, outside: outside}
	}
	return err
}

// shapes returns the datasets' shapes, and an error if they contradict each other.
func shapes(datasets []Dataset) ([]*dataset.Dataset, error) {
	out := make([]*dataset.Dataset, 0, len(datasets))
	for i, d := range datasets {
		if d == nil {
			return nil, invalid.New(ErrInvalid, "dataset "+strconv.Itoa(i), "nil", "a schema from Define")
		}
		shape := d.shape()
		if shape == nil {
			return nil, invalid.New(ErrInvalid, "dataset "+strconv.Itoa(i), "the zero value", "a schema from Define")
		}
		out = append(out, shape)
	}
	return out, dataset.CheckTogether(out)
}
