package tsdb

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/ctxerr"
	"github.com/tidemark-go/tidemark/internal/ingest/buffer"
	"github.com/tidemark-go/tidemark/internal/ingest/change"
	"github.com/tidemark-go/tidemark/internal/ingest/delivery"
	"github.com/tidemark-go/tidemark/internal/ingest/journal"
	"github.com/tidemark-go/tidemark/internal/store/tenancy"
	"github.com/tidemark-go/tidemark/tenant"
)

// changes is what a writer remembers for its sinks with OnChange. It is empty until the first point of one.
type changes struct {
	writer *Writer
	once   sync.Once
	memory atomic.Pointer[change.Memory]

	closing sync.Once
	closed  chan struct{} // closed when all held points are stored
}

// open returns the writer's memory, and makes it for the first point.
func (c *changes) open() *change.Memory {
	if m := c.memory.Load(); m != nil {
		return m
	}
	c.once.Do(func() {
		w := c.writer
		m := change.New(change.Options{Bytes: int(w.opts.bufferBytes()), Put: c.again, Erased: w.store.erased})
		w.store.changes.add(m)
		c.memory.Store(m)
	})
	return c.memory.Load()
}

// take gives a point to the writer.
func (c *changes) take(ctx context.Context, p *change.Point, try bool) Outcome {
	pending := p.Pending
	p.Pending = nil // once the writer has it, it may be reused
	out := c.writer.take(ctx, pending, try)
	if out.Err != nil {
		p.Pending = pending
	}
	return out
}

// again gives a point to the writer because the one before it was not stored.
func (c *changes) again(p *change.Point) {
	if out := c.take(context.Background(), p, true); out.Err != nil {
		c.lose(p, out)
	}
}

// storeHeld gives points to the writer that were left out.
func (c *changes) storeHeld(ctx context.Context, held []*change.Point, try bool) {
	for _, p := range held {
		c.storeOne(ctx, p, try)
	}
}

func (c *changes) storeOne(ctx context.Context, p *change.Point, try bool) {
	if out := c.takeHeld(ctx, p, try); out.Err != nil {
		c.lose(p, out)
	}
}

// takeHeld is take for a point that was left out. One that has expired meanwhile stays out: no reader misses it.
func (c *changes) takeHeld(ctx context.Context, p *change.Point, try bool) Outcome {
	if p.Dataset.CheckExpired(p.Pending.Write.Cell, c.writer.store.core.Time.Earliest()) != nil {
		p.Ended(bt.Outcome{State: bt.Unchanged})
		return Outcome{State: Unchanged}
	}
	if c.writer.journal != nil {
		p.Pending.Caller = heldCaller{c.writer, p, p.Pending}
	}
	return c.take(ctx, p, try)
}

// heldCaller is the caller of a point that was left out, in a journal. It reports the point if the journal could not
// write it and nobody waits for it.
type heldCaller struct {
	writer *Writer
	*change.Point
	pending *delivery.Pending
}

// Ended implements journal.Caller.
func (h heldCaller) Ended(o bt.Outcome) {
	if h.Silent() && o.State != bt.Journaled {
		h.writer.lose(&h.pending.Item, o)
	}
	h.Point.Ended(o)
}

// storeAhead is storeHeld before a point of a tenant. It does not wait for space in the share of another tenant.
func (c *changes) storeAhead(ctx context.Context, held []*change.Point, try bool, of tenant.ID) {
	for _, p := range held {
		c.storeOne(ctx, p, try || p.Pending.Tenant() != of.String())
	}
}

// lose ends a point that was left out and that the writer cannot take now.
func (c *changes) lose(p *change.Point, out Outcome) {
	o := bt.Outcome{State: bt.Rejected, Err: out.Err}
	c.writer.lose(&p.Pending.Item, o)
	p.Ended(o)
}

// touch forgets the entity of a point that is not compared, and stores what is held of it.
func (c *changes) touch(ctx context.Context, p *delivery.Pending, try bool) {
	if m := c.memory.Load(); m != nil {
		c.storeHeld(ctx, m.Touch(p.Item.Tenant, p.Dataset(), p.Path()), try)
	}
}

// failed forgets the entity of a point that is not stored, which its caller may know as journaled.
func (c *changes) failed(p *delivery.Pending) {
	if c.writer.journal != nil {
		c.touch(context.Background(), p, true)
	}
}

// flush runs until no points were given to the writer meanwhile because others failed.
func (c *changes) flush(run func() error) error {
	m := c.memory.Load()
	if m == nil {
		return run()
	}
	for {
		before := m.Again()
		if err := run(); err != nil || m.Again() == before {
			return err
		}
	}
}

// mostClosing bounds the tenants whose held points are stored at once.
const mostClosing = 256

// close stores all held points, and compares no more. No tenant waits for space in the share of another one, unless very
// many have none. A second call waits for the first one.
func (c *changes) close(ctx context.Context) {
	m := c.memory.Load()
	if m == nil {
		return
	}
	first := false
	c.closing.Do(func() { first, c.closed = true, make(chan struct{}) })
	if !first {
		select {
		case <-c.closed:
		case <-ctx.Done():
		}
		return
	}
	defer close(c.closed)
	c.writer.store.changes.remove(m)
	held := map[string][]*change.Point{}
	for _, p := range m.Close() {
		of := p.Pending.Tenant()
		held[of] = append(held[of], p)
	}
	var all sync.WaitGroup
	closing := make(chan struct{}, mostClosing)
	for _, points := range held {
		closing <- struct{}{}
		all.Go(func() {
			defer func() { <-closing }()
			for _, p := range points {
				out := c.takeHeld(ctx, p, false)
				if ended := ctxerr.Of(ctx); out.Err != nil && ended != nil {
					out.Err = fmt.Errorf("%w: %w", buffer.ErrClosed, ended)
				}
				if out.Err != nil {
					c.lose(p, out)
				}
			}
		})
	}
	all.Wait()
	if c.writer.journal == nil && m.Waits() { // for points that may be rejected
		_ = c.flush(func() error { return c.writer.buffer.Flush(ctx) })
	}
}

func (c *changes) unchanged() uint64 {
	if m := c.memory.Load(); m != nil {
		return m.Unchanged()
	}
	return 0
}

// silent reports whether nobody waits for the outcome of a write.
func silent(c journal.Caller) bool {
	p, ok := c.(*change.Point)
	return c == nil || ok && p.Silent()
}

// memories are those of a store's writers.
type memories struct {
	mu  sync.Mutex
	all atomic.Pointer[[]*change.Memory]
}

func (ms *memories) list() []*change.Memory {
	if all := ms.all.Load(); all != nil {
		return *all
	}
	return nil
}

func (ms *memories) add(m *change.Memory) {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	all := append(slices.Clone(ms.list()), m)
	ms.all.Store(&all)
}

func (ms *memories) remove(m *change.Memory) {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	all := slices.DeleteFunc(slices.Clone(ms.list()), func(o *change.Memory) bool { return o == m })
	ms.all.Store(&all)
}

// erased reports whether a write belongs to what was erased since it was taken, as far as is known.
func (s *Store) erased(w tenancy.Write, taken tenancy.Generation) bool {
	m := s.core.Erased.Last()
	return m != nil && len(m.Tenants) > 0 && m.CoversWrite(w, taken, s.core.Erased.Clock())
}

// dropTenants forgets what is in memory of tenants whose marks have changed.
func (s *Store) dropTenants(of func(tenant string) bool) {
	s.core.DropTenants(of)
	for _, m := range s.changes.list() {
		m.Drop(of)
	}
}

// pauseChanges makes writers forget an entity, and store all points of its tenant until the returned function is
// called.
func (a *access) pauseChanges(path string) (resume func()) {
	return a.pause(path, nil)
}

// pauseChangesUnder is pauseChanges for the entities below a prefix.
func (a *access) pauseChangesUnder(p Prefix) (resume func()) {
	space := a.rows.Space
	return a.pause("", func(path string) bool { return space.ID(path).Below(space, p.path) })
}

func (a *access) pause(path string, below func(path string) bool) (resume func()) {
	list, id := a.store.changes.list(), a.rows.Tenant.String()
	for _, m := range list {
		m.Pause(id, a.rows.D.Name, path, below)
	}
	return func() {
		for _, m := range list {
			m.Resume(id)
		}
	}
}
