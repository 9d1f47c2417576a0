package tsdb

import (
	"context"
	"fmt"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/internal/inside"
	"github.com/tidemark-go/tidemark/internal/store/dataset"
	"github.com/tidemark-go/tidemark/internal/telemetry"
	"github.com/tidemark-go/tidemark/tenant"
)

// insider is every *Repository[T], for the packages of this module that are built on tsdb.
type insider interface {
	inside() (inside.Repository, error)
	asUnlimited(single bool) any
	beginMany(ctx context.Context, name telemetry.Name, n int, batched bool) (context.Context, *telemetry.Op)
}

func init() {
	inside.OfStore = func(store any) (inside.Store, error) { return store.(*Store).inside() }
	inside.Watch = func(store any) *telemetry.Probe {
		if s := store.(*Store); s != nil && s.core != nil {
			return s.core.Watch
		}
		return nil
	}
	inside.OfRepository = func(repo any) (inside.Repository, error) { return repo.(insider).inside() }
	inside.OfDataset = func(d any) (inside.Dataset, error) {
		dataset, _ := d.(Dataset)
		return insideDataset(dataset)
	}
	inside.Begin = func(ctx context.Context, repo any, name telemetry.Name, n int, batched bool) (context.Context, *telemetry.Op) {
		return repo.(insider).beginMany(ctx, name, n, batched)
	}
	inside.Add = func(ctx context.Context, writer any, ev inside.Event, told any) error {
		f, _ := told.(func(Outcome))
		return writer.(*Writer).add(ctx, ev, f)
	}
	inside.Sizes = func(ctx context.Context, store any, dataset string, id tenant.ID) (inside.Stored, error) {
		return store.(*Store).sizes(ctx, dataset, id)
	}
	inside.EntityAt = func(path string) any { return Entity{path: path} }
	inside.SetUnlimited(func(repo any, single bool) any { return repo.(insider).asUnlimited(single) })
}

func (s *Store) inside() (inside.Store, error) {
	if err := s.admit(); err != nil {
		return inside.Store{}, err
	}
	return inside.Store{
		Table: s.core.Whole, For: s.core.Rows, Name: s.core.Name, Alone: s.alone, SetAlone: func() { s.alone = true }, Clock: s.core.Clock, Admin: s.adminClient, Explain: s.core.Explain,
		Admit: s.core.Admit, Marks: s.core.Erased.ReadAgain, Profiles: s.core.RenewProfiles,
		Entry: s.core.Entry, Points: s.core.Raw, Ensure: s.ensureDescribed, Families: dataset.FamiliesFromCatalog,
		Confirmed: s.service.Confirmed, Earliest: s.core.Time.Earliest, WatchClock: s.service.Use,
	}, nil
}

// adminClient returns an admin client, and what ends it.
func (s *Store) adminClient(ctx context.Context) (*bigtable.AdminClient, func(), error) {
	if s.admin == nil {
		return nil, nil, ErrNoAdmin
	}
	admin, err := s.admin(ctx)
	switch {
	case err != nil:
		return nil, nil, fmt.Errorf("tsdb: admin client: %w", err)
	case s.keep:
		return admin, func() {}, nil
	}
	return admin, func() { _ = admin.Close() }, nil
}
