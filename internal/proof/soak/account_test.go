package soak

import (
	"fmt"
	"math/bits"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/tidemark-go/tidemark/tsdb"
)

// set is a set of slots.
type set []uint64

func newSet(slots int) set   { return make(set, (slots+63)/64) }
func (s set) has(i int) bool { return i >= 0 && i>>6 < len(s) && s[i>>6]&(1<<(i&63)) != 0 }
func (s set) put(i int)      { s[i>>6] |= 1 << (i & 63) }
func (s set) drop(i int)     { s[i>>6] &^= 1 << (i & 63) }
func (s set) count() (n int) { return s.countIn(0, len(s)*64) }
func (s set) highest() int   { return s.highestUpTo(len(s)*64 - 1) }
func (s set) clone() set     { return append(set(nil), s...) }

// orBoth adds the slots that are in both of two sets.
func (s set) orBoth(a, b set) {
	for i := range s {
		s[i] |= a[i] & b[i]
	}
}

func (s set) countIn(from, to int) (n int) {
	for i := max(from, 0); i < min(to, len(s)*64); i++ {
		if i&63 == 0 && i+64 <= to {
			n += bits.OnesCount64(s[i>>6])
			i += 63
		} else if s.has(i) {
			n++
		}
	}
	return n
}

// highestUpTo returns the highest slot of the set that is at most i, or -1 if there is none.
func (s set) highestUpTo(i int) int {
	for i = min(i, len(s)*64-1); i >= 0; i-- {
		if i&63 == 63 && s[i>>6] == 0 {
			i -= 63
			continue
		}
		if s.has(i) {
			return i
		}
	}
	return -1
}

// marks has a set for each of the two versions of a device's points.
type marks [2]set

// series records which points of one device in one dataset were put, acknowledged and delivered.
type series struct {
	age time.Duration // retention; 0 means none

	mu      sync.Mutex
	tried   marks
	acked   marks
	arrived marks      // certainly delivered, because the writer was flushed since
	pending set        // put, without an outcome yet
	dead    set        // became a dead letter, or the outcome is unknown
	seen    [2]int     // the newest slot that a read returned, from points and from heads
	floors  [4]floorAt // the last deliveries, newest first
}

// floorAt is the newest slot that was delivered at a time.
type floorAt struct {
	by   time.Time
	slot int
}

// The two places where reads find newest points. A write reaches them one after the other.
const (
	byPoints = iota
	byHead
)

func newSeries(slots int, age time.Duration) *series {
	s := &series{age: age, pending: newSet(slots), dead: newSet(slots), seen: [2]int{-1, -1}}
	for v := range 2 {
		s.tried[v], s.acked[v], s.arrived[v] = newSet(slots), newSet(slots), newSet(slots)
	}
	return s
}

// bytes returns the size of the records of one series.
func (s *series) bytes() int64 { return int64(8 * 8 * len(s.pending)) }

// put is one write of one point.
type put struct {
	slot, version int
	first         bool // first write of this version
}

// choose draws and records what a device writes next: mostly the current slot, sometimes an older one, the same point
// again, or another value.
func (s *series) choose(rnd *rand.Rand, now int) (put, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := put{slot: now, first: true}
	draw := rnd.IntN(100)
	switch {
	case s.age > 0: // only new points, so that they expire at their own time
	case draw < 15 || s.tried[0].has(now):
		p.slot = max(0, now-rnd.IntN(400))
	case draw < 35:
		p.slot = s.acked[0].highestUpTo(now - rnd.IntN(200))
		if p.slot < 0 || !s.acked[0].has(p.slot) {
			return p, false
		}
		p.first = !s.tried[1].has(p.slot) && draw < 28
		if p.first || s.tried[1].has(p.slot) {
			p.version = 1
		}
		if s.tried[1].has(p.slot) && !s.acked[1].has(p.slot) {
			return p, false
		}
	}
	if s.pending.has(p.slot) || s.dead.has(p.slot) || p.first && s.tried[p.version].has(p.slot) || p.slot/64 >= len(s.pending) {
		return p, false
	}
	s.tried[p.version].put(p.slot)
	s.pending.put(p.slot)
	return p, true
}

// recordOutcome records the outcome of a put.
func (s *series) recordOutcome(p put, out tsdb.Outcome) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.pending.has(p.slot) {
		return fmt.Errorf("slot %d got two outcomes, the second is %v", p.slot, out.State)
	}
	s.pending.drop(p.slot)
	switch out.State {
	case tsdb.Stored, tsdb.Journaled:
		if !s.dead.has(p.slot) || s.arrived[p.version].has(p.slot) { // it may have become a dead letter before
			s.acked[p.version].put(p.slot)
		}
	case tsdb.Rejected:
		if p.first {
			s.tried[p.version].drop(p.slot) // it must not be stored
		}
	case tsdb.Unknown:
		s.dead.put(p.slot)
	default:
		return fmt.Errorf("slot %d ended in state %v", p.slot, out.State)
	}
	return nil
}

// recordDead records that an acknowledged point became a dead letter. Its version is unknown.
func (s *series) recordDead(slot int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dead.put(slot)
	for v := range 2 {
		if !s.arrived[v].has(slot) {
			s.acked[v].drop(slot)
		}
	}
}

// snapshot returns the acknowledged points.
func (s *series) snapshot() marks {
	s.mu.Lock()
	defer s.mu.Unlock()
	return marks{s.acked[0].clone(), s.acked[1].clone()}
}

// recordDelivered records that the points of a snapshot are delivered, except those that became dead letters.
func (s *series) recordDelivered(snap marks) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for v := range 2 {
		s.arrived[v].orBoth(snap[v], s.acked[v])
	}
	copy(s.floors[1:], s.floors[:])
	s.floors[0] = floorAt{time.Now(), s.arrived[0].highest()}
}

// expectation is what a read of some slots must return, as of before the read.
type expectation struct {
	from  int
	slots []bool // delivered
	again []bool // delivered in the second version
}

func (s *series) expectedIn(from, to int) expectation {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := expectation{from: from, slots: make([]bool, to-from), again: make([]bool, to-from)}
	for i := from; i < to; i++ {
		o.slots[i-from] = s.arrived[0].has(i) || s.arrived[1].has(i)
		o.again[i-from] = s.arrived[1].has(i)
	}
	return o
}

// wasTried reports whether a version was put.
func (s *series) wasTried(slot, version int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tried[version].has(slot)
}

// floor returns the newest slot that a read must return at least: one that was delivered or, with monotone, was
// returned before from the same place.
func (s *series) floor(way int, monotone bool) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.arrived[0].highest()
	if monotone {
		f = max(f, s.seen[way])
	}
	return f
}

// floorBy returns the newest slot that was known to be delivered at a time, or -1 if there is none.
func (s *series) floorBy(t time.Time) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.floors {
		if !f.by.IsZero() && f.by.Before(t) {
			return f.slot
		}
	}
	return -1
}

// recordSeen records the newest slot that a read returned.
func (s *series) recordSeen(way, slot int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen[way] = max(s.seen[way], slot)
}
