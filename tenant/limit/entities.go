package limit

// entities are the entities that a tenant has written in this window and in the one before, by 64-bit hashes. (A
// sketch such as HyperLogLog counts them in less memory, but cannot test membership. A Bloom filter can, but is
// sometimes wrong. This set is exact unless two entities have the same hash: among 10 million entities, the chance is
// 1 in 370,000 that any two do.)
type entities struct {
	fresh, old map[uint64]struct{} // of this window and of the one before; no hash is in both
	began      int64               // when this window began
}

// turn starts a new window if it is time, and forgets the entities that were not written in the last one. If the clock
// has gone back, the window begins again.
func (e *entities) turn(now, length int64) {
	switch elapsed := now - e.began; {
	case e.count() == 0 || elapsed >= 2*length:
		*e = entities{began: now}
	case elapsed >= length:
		*e = entities{old: e.fresh, began: e.began + length}
	case elapsed < 0:
		e.began = now
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

// add records that this window has a write of the entity with this hash.
func (e *entities) add(hash uint64) {
	if e.fresh == nil {
		e.fresh = map[uint64]struct{}{}
	}
	e.fresh[hash] = struct{}{}
	delete(e.old, hash)
}
