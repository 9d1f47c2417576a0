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

// ErasedWithin is the maximum time until every open store of a table honours a new erasure mark: it then refuses reads
// and writes of the erased tenant with ErrErased, and its writers drop the tenant's points. A store that cannot read
// the marks uses those it has read last; a store that has never read them refuses reads and writes.
const ErasedWithin = 10 * time.Second

const (
	// marksDue is the age at which a call starts a new read in the background. At ErasedWithin a call waits for it.
	marksDue = ErasedWithin / 2
	// marksWait is how long a call waits for a read at most, if older marks are known.
	marksWait = ErasedWithin - marksDue
	// marksPause is the pause after a read that failed.
	marksPause = time.Second
)

// Erasures holds the erasure marks of a table, as a store knows them.
type Erasures struct {
	refresh.Value[Marks]
	table    *bt.Table
	Clock    func() time.Time // the earliest possible time: a mark that may not have ended applies
	explain  func(error) error
	drop     func(of func(tenant string) bool) // called with the tenants whose marks have changed
	watching sync.Mutex
	watchers map[chan struct{}]bool
}

// Marks are the erasure marks of a table. A value never changes; a new read makes a new one.
type Marks struct {
	catalog.Changes                         // the state of the change log at that read
	readAll         time.Time               // time of the last read of all marks
	changed         map[string]*tenantMarks // those that differ from the previous value; nil if that is not known
	Tenants         map[string]*tenantMarks // usually empty
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
	return e.admit(m, id)
}

func (e *Erasures) admit(m *Marks, id tenant.ID) error {
	if m != nil && len(m.Tenants) > 0 && m.Tenants[id.String()].coversAll(e.Clock()) {
		return fmt.Errorf("%w: tenant %s", ErrErased, id)
	}
	return nil
}

// AdmitCached is Admit for a point that is checked again when it is sent. It uses the marks in memory, if there are
// any, and reads none. If they are too old it waits, as Admit does: the tenant may have been erased and readmitted
// since, and the point would count as written before the erasure.
func (e *Erasures) AdmitCached(ctx context.Context, id tenant.ID) error {
	m := e.Peek()
	if m != nil && e.Stale() {
		var err error
		if m, err = e.Marks(ctx); err != nil {
			return err
		}
	}
	return e.admit(m, id)
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
	if m == nil || len(m.Tenants) == 0 || !m.Tenants[id.String()].coversEntity(dataset, path, e.Clock()) {
		return nil
	}
	return fmt.Errorf("%w: an entity of dataset %s of tenant %s", ErrErased, dataset, id)
}

// coversDataset reports whether a dataset is deleted.
func (m *Marks) coversDataset(dataset string, now time.Time) bool {
	return m.Tenants[catalog.DeletedDataset(dataset)].coversAll(now)
}

// Marks returns the marks. They are at most ErasedWithin old, if they can be read.
func (e *Erasures) Marks(ctx context.Context) (*Marks, error) { return e.Get(ctx) }

// LoadSoon reads the marks if none are known, so that the first call does not wait for them. If that fails, the first
// call reports it.
func (e *Erasures) LoadSoon(ctx context.Context) { _, _ = e.Marks(ctx) }

// marksChanged is called, with the lock held, when marks have changed. The cache then drops what it holds of those
// tenants: a tenant may have been erased and readmitted between two reads.
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
		all = all || strings.HasPrefix(name, rowkey.DeletedMark) // a deleted dataset: any tenant may have points of it
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
