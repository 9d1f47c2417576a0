package spool

import "slices"

// publish makes a durable commit visible in memory: its blocks replace the removed ones. The caller holds mu.
func (s *Spool) publish(w *work) {
	s.state = w.state
	s.commits++
	s.deadBytes += w.deadBytes
	for name, value := range w.metas {
		s.metaBytes -= len(name) + len(s.metas[name])
		if value == nil {
			delete(s.metas, name)
			continue
		}
		s.metaBytes += len(name) + len(value)
		s.metas[name] = value
	}
	for _, b := range w.burials {
		s.index.mark(b.src.b, b.place)
	}
	for b, src := range w.sources {
		b.marked = b.marked || src.role == note
	}
	for _, r := range w.runs {
		s.index.replace(r)
	}
	s.index.replace(w.tail)
	// Records that became done during the commit are still to be written.
	s.index.dirty = slices.DeleteFunc(s.index.dirty, func(b *block) bool {
		src := w.sources[b]
		switch {
		case src == nil || src.role == leave:
			return false
		case src.role == note && b.left != src.left:
			return false
		}
		b.dirty = false
		return true
	})
	s.index.sweep()
}

// replace puts the new blocks of a run into the place of the old ones and of the empty ones between them, or at the
// end.
func (x *index) replace(r *run) {
	lo, hi := len(x.list), len(x.list)
	if n := len(r.from); n > 0 {
		lo, hi = x.at(r.from[0].b.first), x.at(r.from[n-1].b.first)+1
	}
	for _, b := range x.list[lo:hi] {
		x.left -= b.left
		if b.left == 0 {
			x.empty--
		}
		x.free(b)
	}
	x.list = slices.Replace(x.list, lo, hi, r.to...)
	for _, b := range r.to {
		x.left += b.left
		x.bytes += int64(b.size)
	}
	// Records that became done during the commit.
	for _, src := range r.from {
		for i := range src.b.n {
			if src.b.done.has(i) && !src.done.has(i) {
				if b, place, ok := x.find(src.b.seq(i)); ok {
					x.mark(b, place)
				}
			}
		}
	}
}
