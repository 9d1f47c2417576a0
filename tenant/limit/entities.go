package limit

// entities are those that a tenant has written in this window and in the one before, by a hash of 64 bits. (A sketch such as
// HyperLogLog counts them in less memory, and cannot say whether one is among them; a Bloom filter says so, and is wrong now
// and then. This is right except for two of the same hash: among 10 million, a chance of 1 in 370,000 that there are any.)
type entities struct {
	fresh, old map[uint64]struct{} // of this window and of the one before; no hash is in both
	began      int64               // when this window began
}

// turn begins a new window when it is time, and forgets what was not written in the last one.
func (e *entities) turn(now, length int64) {
	switch elapsed := now - e.began; {
	case e.count() == 0 || elapsed >= 2*length:
		*e = entities{began: now}
	case elapsed >= length:
		*e = entities{old: e.fresh, began: e.began + length}
	}
}

func (e *entities) count() int { return len(e.fresh) + len(e.old) }

func (e *entities) has(hash uint64) bool {
	if _, ok := e.fresh[hash]; ok {
		return true
	}
	_, ok := e.old[hash]
	return ok
}

// add records that the entity of a hash is written in this window.
func (e *entities) add(hash uint64) {
	if e.fresh == nil {
		e.fresh = map[uint64]struct{}{}
	}
	e.fresh[hash] = struct{}{}
	delete(e.old, hash)
}
