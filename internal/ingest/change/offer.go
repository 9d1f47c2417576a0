package change

import (
	"slices"

	"github.com/tidemark-go/tidemark/internal/store/tenancy"
)

// Verdict says what is to be done with a point.
type Verdict uint8

const (
	// Store means that the point is to be given to the writer, with itself as its Caller.
	Store Verdict = iota
	// Unchanged means that it is left out. Done was not called, and will not be.
	Unchanged
	// Waits means that Done gets the outcome when the point before it has one.
	Waits
)

// Ahead are points that were left out and are to be given to the writer before another one.
type Ahead struct {
	Own    *Point   // of the same stream: if the writer refuses it, call Undo; nil for none
	Others []*Point // of streams that are forgotten
}

// Offer compares a point with the last one of its stream. Taken says when it was taken.
func (m *Memory) Offer(p *Point, taken tenancy.Generation, r Rule) (Verdict, Ahead) {
	p.taken, p.payload, p.tenant = taken, p.Pending.Write.Payload, p.Pending.Item.Tenant
	m.mu.Lock()
	defer m.mu.Unlock()
	for {
		s := m.streamOf(p)
		var last *Point
		if s != nil {
			last = s.last
		}
		m.mu.Unlock() // Same is the program's
		how := r.compare(last, p)
		m.mu.Lock()
		if now := m.streamOf(p); now == s && (s == nil || s.last == last) {
			return m.decide(p, s, how, &r)
		}
	}
}

// streamOf returns the stream of a point, or nil. It forgets what was erased, or is in another class.
func (m *Memory) streamOf(p *Point) *stream {
	e := m.entity(p.place())
	if e == nil {
		return nil
	}
	for i := len(e.streams) - 1; i >= 0; i-- {
		s := e.streams[i]
		if s.last.Dataset != p.Dataset || m.opts.Erased(p.Pending, s.last.taken) {
			m.leave(m.remove(s))
		} else if slices.Equal(s.last.Fields, p.Fields) && (s.last.Fields == nil) == (p.Fields == nil) {
			return s
		}
	}
	return nil
}

// leave drops a held point. One that waits for an outcome is dropped when that is known.
func (m *Memory) leave(p *Point) {
	if p != nil && !p.waits {
		p.release()
	}
}

// untracked is the generation of a write that was taken while marks of erasures could not be read.
const untracked tenancy.Generation = 0

func (m *Memory) decide(p *Point, s *stream, how relation, r *Rule) (v Verdict, a Ahead) {
	at := p.place()
	if m.closed || m.paused[at.tenant] > 0 || p.taken == untracked {
		p.state = given
		if e := m.entity(at); e != nil {
			a.Others = m.forget(e, all)
		}
		return Store, a
	}
	if how == same {
		if v := m.leaveOut(p, s); v != Store {
			a.Others = m.makeRoom()
			return v, a
		}
	}
	p.state = given
	if s == nil {
		a.Others = m.begin(p)
	} else {
		a.Own = m.follow(p, s, how, r)
		a.Others = m.forget(s.entity, func(o *stream) bool { return o != s && o.last.overlaps(p) })
	}
	a.Others = append(a.Others, m.makeRoom()...)
	return Store, a
}

// maxStreams bounds the streams of an entity, because each point looks for its own.
const maxStreams = 256

// begin makes a stream of a point, and forgets those of the entity that have a field in common with it.
func (m *Memory) begin(p *Point) (held []*Point) {
	e := m.entity(p.place())
	if e == nil {
		e = m.add(p.place())
	}
	s := &stream{entity: e, last: p}
	p.stream = s
	e.streams = append(e.streams, s)
	m.weigh(s)
	return m.forget(e, func(o *stream) bool {
		return o != s && (o.last.overlaps(p) || len(e.streams) > maxStreams)
	})
}

// follow notes a point that is stored after others, and returns the held one, if it is to be stored too: a step stays a
// step.
func (m *Memory) follow(p *Point, s *stream, how relation, r *Rule) (own *Point) {
	held := s.held
	s.held = nil
	switch {
	case held == nil:
	case held.Time.Equal(p.Time), how != differs && how != late && !r.old(held, p):
		m.leave(held)
	default:
		held.state, own = given, held
	}
	if p.stream = s; own != nil {
		own.stream, p.before = s, s.last
	}
	s.last = newest(s.last, own, p)
	m.weigh(s)
	return own
}

// Undo takes back Offer's verdict Store, because the writer refused the own point ahead of p. It reports whether that
// point is held again. P itself is then refused, too.
func (m *Memory) Undo(p, own *Point) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := p.stream
	if s.bytes == 0 || s.last != newest(p.before, own, p) {
		return false
	}
	own.state = leftOut
	m.leave(s.held)
	s.last, s.held = p.before, own
	m.weigh(s)
	return true
}

// leaveOut leaves a point out, or returns Store if too many wait for the outcome of the last one.
func (m *Memory) leaveOut(p *Point, s *stream) Verdict {
	if s.last.state == given {
		size := p.heldSize()
		if m.waiting[""]+size > m.opts.Bytes/2 || m.waiting[p.tenant]+size > m.opts.Bytes/8 {
			return Store
		}
		p.waits, p.waited = true, size
		s.last.waiting = append(s.last.waiting, p)
		m.wait(p.tenant, size)
		m.hold(p, s)
		return Waits
	}
	p.Done = nil
	if m.unchanged.Add(1); !m.hold(p, s) {
		p.release()
	}
	return Unchanged
}

// hold makes p the held point of its stream, unless it is older than the one there.
func (m *Memory) hold(p *Point, s *stream) bool {
	if !p.Time.After(s.last.Time) || s.held != nil && p.Time.Before(s.held.Time) {
		return false
	}
	m.leave(s.held)
	s.held = p
	m.weigh(s)
	return true
}

func (m *Memory) wait(tenant string, bytes int) {
	m.waiting[""] += bytes
	if m.waiting[tenant] += bytes; m.waiting[tenant] == 0 {
		delete(m.waiting, tenant)
	}
}
