package engine

const (
	slabFirst = 512
	slabMax   = 16 << 10
)

// slab returns copies of bytes, cut from larger pieces so that a row costs few allocations. A piece lives as long as
// anything cut from it. So pieces stay small, and large data gets its own memory.
type slab struct {
	free []byte // free[:len] is in use
	next int
}

// slabMark is a state of a slab to which reset can return.
type slabMark struct {
	used int
	of   *byte
}

// alloc returns n bytes to fill.
func (s *slab) alloc(n int) []byte {
	if n == 0 {
		return []byte{}
	}
	if n > slabMax/4 {
		return make([]byte, n)
	}
	if cap(s.free)-len(s.free) < n {
		s.next = max(min(s.next*2, slabMax), slabFirst)
		for s.next < n {
			s.next *= 2
		}
		s.free = make([]byte, 0, s.next)
	}
	used := len(s.free)
	s.free = s.free[:used+n]
	return s.free[used : used+n : used+n]
}

// copy returns a copy of b.
func (s *slab) copy(b []byte) []byte {
	out := s.alloc(len(b))
	copy(out, b)
	return out
}

// mark returns the slab's current state.
func (s *slab) mark() slabMark {
	m := slabMark{used: len(s.free)}
	if cap(s.free) > 0 {
		m.of = &s.free[:1][0]
	}
	return m
}

// reset frees everything allocated since the mark. None of it may be in use.
func (s *slab) reset(m slabMark) {
	switch {
	case cap(s.free) == 0:
	case m.of == &s.free[:1][0]:
		s.free = s.free[:m.used]
	default:
		s.free = s.free[:0] // the piece was begun after the mark
	}
}
