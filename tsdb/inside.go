package tsdb

import (
	"context"
	"fmt"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/internal/inside"
	"github.com/tidemark-go/tidemark/internal/telemetry"
)

// Inside is for the packages of this module that are built on tsdb: no other can make its argument. Its error is ErrClosed
// on a store that is closed.
func (s *Store) Inside(inside.Key) (inside.Store, error) {
	if err := s.admit(); err != nil {
		return inside.Store{}, err
	}
	return inside.Store{
		Table: s.whole, For: s.rows, Name: s.name, Alone: s.alone, SetAlone: func() { s.alone = true }, Clock: s.clock, Admin: s.adminClient, Explain: s.explain,
		Admit: s.admitOne, Marks: s.erased.readAgain, Classes: s.classes.renew,
		Entry: s.entries.get, Points: s.rawPoints, Ensure: s.ensureDescribed, Families: describedFamilies,
		Confirmed: s.confirmed, Earliest: s.time.Earliest, WatchClock: s.watchClock,
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

// Watch is for the packages of this module that are built on tsdb, whose operations the store's telemetry tells of, too.
func (s *Store) Watch(inside.Key) *telemetry.Probe {
	if s == nil {
		return nil
	}
	return s.watch
}
