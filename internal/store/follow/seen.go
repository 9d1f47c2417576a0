package follow

import (
	"crypto/sha256"
	"encoding/binary"
	"math"
	"slices"

	"github.com/tidemark-go/tidemark/internal/store/dataset"
)

// maxSeen is how many delivered points a follower remembers, at about 50 bytes each. If more arrive within the window,
// the window gets shorter.
const maxSeen = 65_536

// maxRecent is how many delivered points a cursor remembers.
const maxRecent = 64

// keys identify a point, and a point with its value.
type keys struct{ point, pair uint64 }

// keysOf returns the keys of a point. They are cut from a SHA-256: a collision would lose a point.
func keysOf(d *dataset.Dataset, h dataset.Hit) keys {
	var buf [512]byte
	b := binary.AppendUvarint(buf[:0], uint64(len(h.Path)))
	b = append(b, h.Path...)
	b = binary.BigEndian.AppendUint64(b, uint64(h.Units))
	b = append(b, h.ID...)
	point := sha256.Sum256(b)
	b = append(b[:0], point[:]...)
	tag := ""
	if h.Err == nil {
		tag = d.Tags[h.Tag]
	}
	b = binary.AppendUvarint(b, uint64(len(tag)))
	b = append(b, tag...)
	pair := sha256.Sum256(append(b, h.Payload...))
	return keys{point: binary.BigEndian.Uint64(point[:]), pair: binary.BigEndian.Uint64(pair[:])}
}

// seen holds the points of the window that were delivered, or that were there before the follower began.
type seen struct {
	points   map[uint64]known
	arrivals uint64 // from this store
	ring     [maxRecent]recent
	next     int                 // in the ring
	resumed  map[uint64]struct{} // pairs from a cursor
	sweeps   int                 // that were completed since the cursor
}

type known struct {
	pair    uint64
	units   int64
	arrival uint64 // the number of the arrival at this store; 0 for a point that was read
}

type recent struct {
	pair  uint64
	units int64
	used  bool
}

func newSeen() seen { return seen{points: map[uint64]known{}} }

// resume takes in the pairs of a cursor.
func (s *seen) resume(pairs []uint64) {
	s.resumed = make(map[uint64]struct{}, len(pairs))
	for _, pair := range pairs {
		s.resumed[pair] = struct{}{}
		s.push(recent{pair: pair, units: math.MaxInt64})
	}
}

func (s *seen) push(r recent) {
	r.used = true
	s.ring[s.next%maxRecent] = r
	s.next++
}

// record takes in a value of a point. The one before it counts as delivered no more, also for who continues.
func (s *seen) record(k keys, units int64, arrival uint64) {
	if old, ok := s.points[k.point]; ok && old.pair != k.pair {
		delete(s.resumed, old.pair)
		for i := range s.ring {
			s.ring[i].used = s.ring[i].used && s.ring[i].pair != old.pair
		}
	}
	s.points[k.point] = known{pair: k.pair, units: units, arrival: arrival}
	s.push(recent{pair: k.pair, units: units})
}

// has reports whether a point was delivered with this value.
func (s *seen) has(k keys, units int64) bool {
	if old, ok := s.points[k.point]; ok {
		return old.pair == k.pair
	}
	if _, ok := s.resumed[k.pair]; !ok {
		return false
	}
	s.points[k.point] = known{pair: k.pair, units: units}
	for i := range s.ring {
		if s.ring[i].pair == k.pair {
			s.ring[i].units = units
		}
	}
	return true
}

// arrived takes in a point of this store, and reports whether it is to be delivered.
func (s *seen) arrived(k keys, units int64) bool {
	s.arrivals++
	if s.has(k, units) {
		old := s.points[k.point]
		old.arrival = s.arrivals
		s.points[k.point] = old
		return false
	}
	s.record(k, units, s.arrivals)
	return true
}

// found takes in a point that a poll has read, and reports whether it is to be delivered. If this store has written the
// point since the poll began, what was read may be older than that: the next sweep reads it again.
func (s *seen) found(k keys, units int64, since uint64) bool {
	if s.points[k.point].arrival > since || s.has(k, units) {
		return false
	}
	s.record(k, units, 0)
	return true
}

// recent returns the pairs of the last delivered points from a time on.
func (s *seen) recent(floor int64) (pairs []uint64) {
	for _, r := range s.ring {
		if r.used && r.units >= floor && !slices.Contains(pairs, r.pair) {
			pairs = append(pairs, r.pair)
		}
	}
	return pairs
}

// forget forgets the points before a time, after a sweep.
func (s *seen) forget(floor int64) {
	for key, k := range s.points {
		if k.units < floor {
			delete(s.points, key)
		}
	}
	if s.sweeps++; s.sweeps == 2 { // the first sweep may have been the rest of one
		s.resumed = nil
	}
}

// shrink forgets the oldest points if there are too many. Then it returns the time from which on it knows all.
func (s *seen) shrink() (oldest int64, ok bool) {
	if len(s.points) <= maxSeen {
		return 0, false
	}
	all := make([]int64, 0, len(s.points))
	for _, k := range s.points {
		all = append(all, k.units)
	}
	slices.Sort(all)
	last := all[len(all)/4]
	for key, k := range s.points {
		if k.units <= last {
			delete(s.points, key)
		}
	}
	return last + 1, true
}
