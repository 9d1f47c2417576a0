package tsdb

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/catalog"
	"github.com/tidemark-go/tidemark/internal/rowkey"
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

// erasures is what a store knows of the erasure marks of its table. It is read at each call, so that takes no lock, and no
// look at the clock either: timers make it old.
type erasures struct {
	table   *bt.Table
	clock   func() time.Time
	explain func(error) error
	drop    func() // called when marks have changed

	known atomic.Pointer[marks] // nil until they were read once
	age   atomic.Uint32         // of known

	mu       sync.Mutex
	watchers map[chan struct{}]bool
	flight   *marksFlight // the read under way
	timer    *time.Timer  // that makes known older
	closed   bool
	base     context.Context
	stop     context.CancelCauseFunc
	flights  sync.WaitGroup
}

// The ages of what is known.
const (
	marksFresh uint32 = iota
	marksAging        // it is read again, and nobody waits for that
	marksStale        // whoever comes waits
)

// marks are the erasure marks of a table. They do not change once they are known.
type marks struct {
	epoch   string
	tenants map[string]tenantMarks // empty nearly always
}

type tenantMarks struct {
	all      *catalog.Mark // of the tenant; nil for none
	entities map[catalog.EntityHash]catalog.Mark
}

type marksFlight struct {
	done chan struct{} // closed when err is set
	err  error
}

func newErasures(s *Store) *erasures {
	e := &erasures{table: s.whole, clock: s.clock, explain: s.explain, drop: s.cache.DropAll}
	e.base, e.stop = context.WithCancelCause(context.Background())
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

// glance is admit for what is looked at again when it is sent: it goes by what is known, if anything, and waits for nothing.
func (e *erasures) glance(id tenant.ID) error {
	m := e.known.Load()
	if m == nil || e.age.Load() != marksFresh {
		e.mu.Lock()
		e.fly()
		e.mu.Unlock()
	}
	if m != nil && len(m.tenants) > 0 && m.covers(id.String(), e.clock()) {
		return fmt.Errorf("%w: tenant %s", ErrErased, id)
	}
	return nil
}

// admitEntity refuses what is to be written to an erased entity. Its tenant has been admitted.
func (e *erasures) admitEntity(id tenant.ID, dataset, path string) error {
	m := e.known.Load()
	if m == nil || len(m.tenants) == 0 || !m.coversEntity(id.String(), dataset, path, e.clock()) {
		return nil
	}
	return fmt.Errorf("%w: one of dataset %s of tenant %s", ErrErased, dataset, id)
}

// covers reports whether the whole tenant is erased.
func (m *marks) covers(tenant string, now time.Time) bool {
	t, ok := m.tenants[tenant]
	return ok && t.all != nil && !t.all.Over(now)
}

// coversEntity reports whether an entity is erased by a mark of its own.
func (m *marks) coversEntity(tenant, dataset, path string, now time.Time) bool {
	t := m.tenants[tenant]
	if len(t.entities) == 0 {
		return false
	}
	mark, ok := t.entities[catalog.HashEntity(dataset, path)]
	return ok && !mark.Over(now)
}

// coversWrite reports whether a point or an event on its way is one of an erased tenant or entity.
func (m *marks) coversWrite(tenant string, p *pending, now time.Time) bool {
	if len(m.tenants) == 0 {
		return false
	}
	t, ok := m.tenants[tenant]
	if !ok || t.all != nil && !t.all.Over(now) {
		return ok
	}
	if len(t.entities) == 0 {
		return false
	}
	if ev := p.event; ev != nil {
		return m.coversEntity(tenant, ev.to.Dataset, ev.path, now)
	}
	id, _, ok := rowkey.PointID(p.write.key, p.write.d.salts)
	return ok && m.coversEntity(tenant, p.write.d.name, id.Path(), now)
}

// marks returns the marks, at most as old as ErasedWithin where they can be read.
func (e *erasures) marks(ctx context.Context) (*marks, error) {
	m := e.known.Load()
	if m != nil && e.age.Load() == marksFresh {
		return m, nil
	}
	return e.read(ctx)
}

// read is marks for what is not known or too old.
func (e *erasures) read(ctx context.Context) (*marks, error) {
	e.mu.Lock()
	m, age := e.known.Load(), e.age.Load()
	if m != nil && age == marksFresh {
		e.mu.Unlock()
		return m, nil
	}
	f := e.fly()
	e.mu.Unlock()
	if f == nil {
		return nil, ErrClosed
	}
	if m != nil && age == marksAging {
		return m, nil
	}
	select {
	case <-f.done:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if m := e.known.Load(); m != nil {
		return m, nil
	}
	return nil, f.err
}

// early reads the marks where none are known, so that the first call does not wait for them. Where they cannot be read, that
// one finds out.
func (e *erasures) early(ctx context.Context) { _, _ = e.marks(ctx) }

// refresh reads the marks as they are now.
func (e *erasures) refresh(ctx context.Context) error {
	for range 2 { // the read that is under way may have begun too early
		e.mu.Lock()
		f := e.fly()
		e.mu.Unlock()
		if f == nil {
			return ErrClosed
		}
		select {
		case <-f.done:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if f.err != nil {
			return f.err
		}
	}
	return nil
}

// fly returns the read that is under way, or starts one; nil once the store is closed. The erasures are locked.
func (e *erasures) fly() *marksFlight {
	if e.flight != nil || e.closed {
		return e.flight
	}
	f := &marksFlight{done: make(chan struct{})}
	e.flight = f
	e.flights.Go(func() {
		begin := time.Now()
		m, err := e.load()
		e.landed(f, begin, m, err)
	})
	return f
}

// load reads the marks: one row, and all of them where that says that they have changed.
func (e *erasures) load() (*marks, error) {
	ctx, cancel := e.table.Bound(bt.WithUpkeep(e.base), false)
	defer cancel()
	if e.known.Load() != nil { // there is something to go by
		ctx, cancel = context.WithTimeout(ctx, marksWait)
		defer cancel()
	}
	epoch, err := catalog.MarksEpoch(ctx, e.table) // before the marks, so that it is never newer than they are
	if status.Code(err) == codes.NotFound {
		return &marks{}, nil // a table that is not there has none, and the call itself will say so
	}
	if err != nil {
		return nil, fmt.Errorf("tsdb: read the erasure marks: %w", e.explain(err))
	}
	if m := e.known.Load(); m != nil && m.epoch == epoch {
		return m, nil
	}
	m := &marks{epoch: epoch}
	if epoch == "" {
		return m, nil // no mark was ever made
	}
	m.tenants = map[string]tenantMarks{}
	for mark, err := range catalog.Marks(ctx, e.table) {
		if err != nil {
			return nil, fmt.Errorf("tsdb: read the erasure marks: %w", e.explain(err))
		}
		t := m.tenants[mark.Tenant]
		if mark.Entities == nil {
			t.all = &mark
		} else if t.entities == nil {
			t.entities = map[catalog.EntityHash]catalog.Mark{}
		}
		for _, h := range mark.Entities {
			t.entities[h] = catalog.Mark{Until: mark.Until}
		}
		m.tenants[mark.Tenant] = t
	}
	return m, nil
}

// landed notes what a read has brought.
func (e *erasures) landed(f *marksFlight, begin time.Time, m *marks, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	old := e.known.Load()
	if err == nil {
		e.known.Store(m)
		e.age.Store(marksFresh)
	} else if old != nil {
		e.age.Store(marksFresh) // what was read last is gone by, for a while
	}
	switch {
	case e.closed:
	case err == nil:
		e.ageIn(marksDue-time.Since(begin), marksAging)
	case old != nil:
		e.ageIn(marksPause, marksAging)
	}
	if err == nil && m != old {
		e.changed(old)
	}
	e.flight, f.err = nil, err
	close(f.done)
}

// ageIn makes what is known older in a while. The erasures are locked.
func (e *erasures) ageIn(d time.Duration, age uint32) {
	if e.timer != nil {
		e.timer.Stop()
	}
	var timer *time.Timer
	timer = time.AfterFunc(max(0, d), func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		if e.timer != timer || e.closed {
			return
		}
		e.age.Store(age)
		if age == marksAging {
			e.ageIn(ErasedWithin-marksDue, marksStale)
		}
	})
	e.timer = timer
}

// changed tells that marks are others now. The erasures are locked. The cache drops everything: a tenant may have been erased
// and readmitted while this store did not look, so what is left of its former life cannot be told from the marks. Erasures are
// rare.
func (e *erasures) changed(old *marks) {
	for c := range e.watchers {
		poke(c)
	}
	if old != nil {
		e.drop()
	}
}

// close breaks off the read under way and waits for its end.
func (e *erasures) close() {
	e.mu.Lock()
	e.closed = true
	if e.timer != nil {
		e.timer.Stop()
	}
	e.mu.Unlock()
	e.stop(ErrClosed)
	e.flights.Wait()
}
