package tsdb

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/store/catalog"
	"github.com/tidemark-go/tidemark/internal/store/rowkey"
	"github.com/tidemark-go/tidemark/tenant"
)

// ErasedWithin is how long it takes at most until every open store of a table honours an erasure mark: until a store refuses
// reads and writes of an erased tenant with ErrErased, and its writers drop the points that they hold of it. A store that
// cannot read the marks goes by what it has read last; one that never could refuses reads and writes.
const ErasedWithin = 10 * time.Second

const (
	// marksDue is how old marks are when a call has them read again, behind it. Those as old as ErasedWithin it waits for.
	marksDue = ErasedWithin / 2
	// marksWait bounds a read of the marks where some are known.
	marksWait = ErasedWithin - marksDue
	// marksPause is how long a store leaves the marks alone where they could not be read.
	marksPause = time.Second
)

// erasures is what a store knows of the erasure marks of its table.
type erasures struct {
	kept[marks]
	table    *bt.Table
	clock    func() time.Time // a mark that is not surely over is in force
	explain  func(error) error
	drop     func(of func(tenant string) bool) // called with the tenants whose marks have changed
	watchers map[chan struct{}]bool            // under the lock of kept
}

// marks are the erasure marks of a table. They do not change once they are known.
type marks struct {
	catalog.Changes                         // up to which they are known
	readAll         time.Time               // when all of them were read last
	changed         map[string]*tenantMarks // those that are not as they were known before; nil where it is not known which
	tenants         map[string]*tenantMarks // empty nearly always
}

func newErasures(s *tenancy, drop func(func(tenant string) bool)) *erasures {
	e := &erasures{table: s.whole, clock: func() time.Time { return s.time.Earliest() }, explain: s.explain, drop: drop}
	e.open(s.watch, refreshing{due: marksDue, within: ErasedWithin, wait: marksWait, pause: marksPause})
	e.load, e.changed = e.readMarks, e.tell
	return e
}

// admit refuses what is to be done for an erased tenant.
func (e *erasures) admit(ctx context.Context, id tenant.ID) error {
	m, err := e.marks(ctx)
	if err != nil {
		return err
	}
	if len(m.tenants) > 0 && m.covers(id.String(), e.clock()) {
		return fmt.Errorf("%w: tenant %s", ErrErased, id)
	}
	return nil
}

// glance is admit for a point that is checked again when it is sent. It uses the marks in memory, if there are any, and reads
// none. If they are too old it waits, as admit does: the tenant may have been erased and readmitted since, and the point would
// count as written before the erasure.
func (e *erasures) glance(ctx context.Context, id tenant.ID) error {
	m := e.glimpse()
	if m != nil && e.age.Load() == ageStale {
		var err error
		if m, err = e.marks(ctx); err != nil {
			return err
		}
	}
	if m != nil && len(m.tenants) > 0 && m.covers(id.String(), e.clock()) {
		return fmt.Errorf("%w: tenant %s", ErrErased, id)
	}
	return nil
}

// admitDataset refuses what is to be read of a dataset that is deleted. Its tenant has been admitted.
func (e *erasures) admitDataset(dataset string) error {
	if m := e.known.Load(); m == nil || len(m.tenants) == 0 || !m.coversDataset(dataset, e.clock()) {
		return nil
	}
	return fmt.Errorf("%w: %s", ErrDatasetDeleted, dataset)
}

// admitEntity refuses what is to be written to an erased entity, or a dataset that is deleted. Its tenant has been admitted.
func (e *erasures) admitEntity(id tenant.ID, dataset, path string) error {
	if err := e.admitDataset(dataset); err != nil {
		return err
	}
	m := e.known.Load()
	if m == nil || len(m.tenants) == 0 || !m.coversEntity(id.String(), dataset, path, e.clock()) {
		return nil
	}
	return fmt.Errorf("%w: one of dataset %s of tenant %s", ErrErased, dataset, id)
}

// covers reports whether the whole tenant is erased.
func (m *marks) covers(tenant string, now time.Time) bool {
	t := m.tenants[tenant]
	return t != nil && t.coversAll(now)
}

// coversEntity reports whether an entity is erased by a mark of its own.
func (m *marks) coversEntity(tenant, dataset, path string, now time.Time) bool {
	t := m.tenants[tenant]
	return t != nil && t.coversEntity(dataset, path, now)
}

// coversDataset reports whether a dataset is deleted.
func (m *marks) coversDataset(dataset string, now time.Time) bool {
	return m.covers(catalog.DeletedDataset(dataset), now)
}

// marks returns the marks, at most as old as ErasedWithin where they can be read.
func (e *erasures) marks(ctx context.Context) (*marks, error) { return e.get(ctx) }

// early reads the marks where none are known, so that the first call does not wait for them. Where they cannot be read, that
// one finds out.
func (e *erasures) early(ctx context.Context) { _, _ = e.marks(ctx) }

// tell tells that marks are others now. The erasures are locked. The cache drops what it holds of tenants whose marks have
// changed: one may have been erased and readmitted while this store did not look.
func (e *erasures) tell(old *marks) {
	for c := range e.watchers {
		poke(c)
	}
	if old == nil {
		return
	}
	m := e.known.Load()
	all := m.changed == nil
	for name := range m.changed {
		all = all || strings.HasPrefix(name, rowkey.DeletedMark) // of a dataset, whose points any tenant may have
	}
	e.drop(func(tenant string) bool { return all || m.changed[tenant] != nil })
}
