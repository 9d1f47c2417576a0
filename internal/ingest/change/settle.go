package change

import "github.com/tidemark-go/tidemark/internal/bt"

// settle notes the outcome of a point, and ends those that waited for it: they are unchanged if it is stored, and are
// given to the writer if not.
func (m *Memory) settle(p *Point, ok bool) {
	m.mu.Lock()
	if p.state != given {
		m.mu.Unlock()
		return
	}
	p.before = nil
	if p.state = stored; !ok {
		p.state = failed
		if s := p.stream; s != nil && s.last == p && s.bytes > 0 {
			m.remove(s) // what it held waits for p
		}
	}
	done, again := m.endWaiting(p, ok)
	m.mu.Unlock()
	m.unchanged.Add(uint64(len(done)))
	for _, report := range done {
		if report != nil {
			report(bt.Outcome{State: bt.Unchanged})
		}
	}
	m.again.Add(uint64(len(again)))
	for _, w := range again {
		m.opts.Put(w)
	}
}

// endWaiting empties the waiting points of p. It returns the functions that get the outcome, and the points that are to
// be given to the writer.
func (m *Memory) endWaiting(p *Point, ok bool) (done []func(bt.Outcome), again []*Point) {
	for _, w := range p.waiting {
		w.waits = false
		m.wait(w.tenant, -w.waited)
		switch {
		case w.state != leftOut: // given to the writer meanwhile
		case ok:
			done = append(done, w.Done)
			if w.Done = nil; p.stream.bytes == 0 || p.stream.held != w {
				w.release()
			}
		default:
			again = promote(again, w)
		}
	}
	p.waiting = nil
	return done, again
}

// Touch forgets an entity, because a point of it was given to the writer without a comparison. It returns the points
// that are to be given to the writer before it.
func (m *Memory) Touch(tenant, dataset, path string) (held []*Point) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if e := m.entity(place{tenant, dataset, path}); e != nil {
		held = m.forget(e, all)
	}
	return held
}

// Pause forgets the entity of a tenant's dataset that a deletion is about, without what it holds, and compares no
// points of the tenant until Resume. If below is not nil, the deletion is about all entities for which it returns true.
func (m *Memory) Pause(tenant, dataset, path string, below func(path string) bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.paused[tenant]++
	sh := m.shares[tenant]
	if sh == nil {
		return
	}
	if below == nil {
		if e := sh.entities[place{tenant, dataset, path}]; e != nil {
			m.erase(e)
		}
		return
	}
	for at, e := range sh.entities {
		if at.dataset == dataset && below(at.path) {
			m.erase(e)
		}
	}
}

// Resume ends a Pause.
func (m *Memory) Resume(tenant string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.paused[tenant]--; m.paused[tenant] == 0 {
		delete(m.paused, tenant)
	}
}

// erase forgets an entity without what it holds.
func (m *Memory) erase(e *entity) {
	for len(e.streams) > 0 {
		m.leave(m.remove(e.streams[0]))
	}
}

// Drop forgets what was erased, of the tenants for which of returns true.
func (m *Memory) Drop(of func(tenant string) bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for tenant, sh := range m.shares {
		if !of(tenant) {
			continue
		}
		for _, e := range sh.entities {
			for i := len(e.streams) - 1; i >= 0; i-- {
				if s := e.streams[i]; m.opts.Erased(e, s.last.taken) {
					m.leave(m.remove(s))
				}
			}
		}
	}
}

// Tenant, Dataset and Path implement tenancy.Write.
func (e *entity) Tenant() string  { return e.tenant }
func (e *entity) Dataset() string { return e.dataset }
func (e *entity) Path() string    { return e.path }

// Close forgets everything, and returns the points that are to be given to the writer. Later points are not compared.
func (m *Memory) Close() (held []*Point) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	for _, sh := range m.shares {
		for _, e := range sh.entities {
			held = append(held, m.forget(e, all)...)
		}
	}
	return held
}
