package tenancy

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/refresh"
	"github.com/tidemark-go/tidemark/internal/store/catalog"
	"github.com/tidemark-go/tidemark/internal/store/rowkey"
	"github.com/tidemark-go/tidemark/tenant"
)

// ErasedWithin is how long it takes at most until a store applies an erasure mark. Package tsdb documents it.
const ErasedWithin = 10 * time.Second

const (
	// marksDue is the age at which a call starts a new read in the background. At ErasedWithin a call waits for it.
	marksDue = ErasedWithin / 2
	// marksWait is how long a call waits for a read at most, if older marks are known.
	marksWait = ErasedWithin - marksDue
	// marksPause is the pause after a read that failed.
	marksPause = time.Second
)

// Erasures is what a store knows of the erasure marks of its table.
type Erasures struct {
	refresh.Value[Marks]
	table    *bt.Table
	Clock    func() time.Time // the earliest time that it may be: a mark that may not have ended applies
	explain  func(error) error
	drop     func(of func(tenant string) bool) // called with the tenants whose marks have changed
	watching sync.Mutex
	watchers map[chan struct{}]bool
}

// Marks are the erasure marks of a table. A value never changes; a new read makes a new one.
type Marks struct {
	catalog.Changes                         // up to which they are known
	readAll         time.Time               // when all of them were read last
	changed         map[string]*tenantMarks // those that differ from the value before; nil if that is not known
	Tenants         map[string]*tenantMarks // empty nearly always
}

func newErasures(s *Tenancy, drop func(func(tenant string) bool)) *Erasures {
	e := &Erasures{table: s.Whole, Clock: func() time.Time { return s.Time.Earliest() }, explain: s.Explain, drop: drop}
	e.Open(s.Watch, refresh.Times{Due: marksDue, Within: ErasedWithin, Wait: marksWait, Pause: marksPause})
	e.Load, e.Changed = e.readMarks, e.marksChanged
	return e
}

// Admit refuses a call for an erased tenant.
func (e *Erasures) Admit(ctx context.Context, id tenant.ID) error {
	m, err := e.Marks(ctx)
	if err != nil {
		return err
	}
	if len(m.Tenants) > 0 && m.covers(id.String(), e.Clock()) {
		return fmt.Errorf("%w: tenant %s", ErrErased, id)
	}
	return nil
}

// AdmitCached is Admit for a point that is checked again when it is sent. It uses the marks in memory, if there are any, and reads
// none. If they are too old it waits, as Admit does: the tenant may have been erased and readmitted since, and the point would
// count as written before the erasure.
func (e *Erasures) AdmitCached(ctx context.Context, id tenant.ID) error {
	m := e.Peek()
	if m != nil && e.Stale() {
		var err error
		if m, err = e.Marks(ctx); err != nil {
			return err
		}
	}
	if m != nil && len(m.Tenants) > 0 && m.covers(id.String(), e.Clock()) {
		return fmt.Errorf("%w: tenant %s", ErrErased, id)
	}
	return nil
}

// AdmitDataset refuses a read of a dataset that is deleted. Its tenant has been admitted.
func (e *Erasures) AdmitDataset(dataset string) error {
	if m := e.Last(); m == nil || len(m.Tenants) == 0 || !m.coversDataset(dataset, e.Clock()) {
		return nil
	}
	return fmt.Errorf("%w: %s", ErrDatasetDeleted, dataset)
}

// AdmitEntity refuses a write to an erased entity, or to a deleted dataset. Its tenant has been admitted.
func (e *Erasures) AdmitEntity(id tenant.ID, dataset, path string) error {
	if err := e.AdmitDataset(dataset); err != nil {
		return err
	}
	m := e.Last()
	if m == nil || len(m.Tenants) == 0 || !m.coversEntity(id.String(), dataset, path, e.Clock()) {
		return nil
	}
	return fmt.Errorf("%w: one of dataset %s of tenant %s", ErrErased, dataset, id)
}

// covers reports whether the whole tenant is erased.
func (m *Marks) covers(tenant string, now time.Time) bool {
	t := m.Tenants[tenant]
	return t != nil && t.coversAll(now)
}

// coversEntity reports whether an entity is erased by a mark of its own.
func (m *Marks) coversEntity(tenant, dataset, path string, now time.Time) bool {
	t := m.Tenants[tenant]
	return t != nil && t.coversEntity(dataset, path, now)
}

// coversDataset reports whether a dataset is deleted.
func (m *Marks) coversDataset(dataset string, now time.Time) bool {
	return m.covers(catalog.DeletedDataset(dataset), now)
}

// Marks returns the marks, at most as old as ErasedWithin if they can be read.
func (e *Erasures) Marks(ctx context.Context) (*Marks, error) { return e.Get(ctx) }

// LoadSoon reads the marks if none are known, so that the first call does not wait for them. If that fails, the first call
// reports it.
func (e *Erasures) LoadSoon(ctx context.Context) { _, _ = e.Marks(ctx) }

// marksChanged is called, locked, when marks have changed. The cache then drops what it holds of those tenants: one may have
// been erased and readmitted between two reads.
func (e *Erasures) marksChanged(old *Marks) {
	e.watching.Lock()
	for c := range e.watchers {
		select {
		case c <- struct{}{}:
		default:
		}
	}
	e.watching.Unlock()
	if old == nil {
		return
	}
	m := e.Last()
	all := m.changed == nil
	for name := range m.changed {
		all = all || strings.HasPrefix(name, rowkey.DeletedMark) // of a dataset, whose points any tenant may have
	}
	e.drop(func(tenant string) bool { return all || m.changed[tenant] != nil })
}

// Watch returns a channel that receives a value when marks have changed.
func (e *Erasures) Watch() chan struct{} {
	c := make(chan struct{}, 1)
	e.watching.Lock()
	defer e.watching.Unlock()
	if e.watchers == nil {
		e.watchers = map[chan struct{}]bool{}
	}
	e.watchers[c] = true
	return c
}

// Unwatch ends a Watch.
func (e *Erasures) Unwatch(c chan struct{}) {
	e.watching.Lock()
	defer e.watching.Unlock()
	delete(e.watchers, c)
}
