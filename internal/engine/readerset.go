package engine

import "sync"

// readerSet holds the running readers, so that closing the engine can end them: Pebble does not close while an iterator
// is open. It is a linked list of the readers themselves and allocates nothing.
type readerSet struct {
	mu    sync.Mutex
	first *Reader
}

type readerNode struct{ prev, next *Reader }

func (s *readerSet) add(r *Reader) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r.node.next = s.first
	if s.first != nil {
		s.first.node.prev = r
	}
	s.first = r
}

func (s *readerSet) remove(r *Reader) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.node.prev != nil {
		r.node.prev.node.next = r.node.next
	} else if s.first == r {
		s.first = r.node.next
	}
	if r.node.next != nil {
		r.node.next.node.prev = r.node.prev
	}
	r.node = readerNode{}
}

// closeAll ends all readers. No new ones may be added any more.
func (s *readerSet) closeAll() {
	for _, r := range s.all() {
		r.Close() // it removes itself before it returns
	}
}

// all returns the running readers.
func (s *readerSet) all() (readers []*Reader) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for r := s.first; r != nil; r = r.node.next {
		readers = append(readers, r)
	}
	return readers
}
