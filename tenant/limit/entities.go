package limit

// entities are those that a tenant has written in this window and in the one before, by a hash of 62 bits. (A sketch such as
// HyperLogLog counts them in less memory, and cannot say whether one is among them; a Bloom filter says so, and is wrong now
// and then. This is right but for two of the same hash: among 10 million, a chance of 1 in 90,000 that there are any.)
//
// A slot holds a hash and, in its lower two bits, the window in which the entity was last written; the next free slot behind
// the one where it belongs. It takes 9 to 18 bytes an entity, and nothing where there are none.
type entities struct {
	slots  []uint64 // a power of two; 0 is free
	count  int
	window uint64 // windowA or windowB
	turned int64  // when it began
}

const (
	windowA, windowB = 1, 2
	windowBits       = windowA | windowB
	leastSlots       = 16
)

// turn begins a new window where it is time: what was not written in the last one is forgotten.
func (e *entities) turn(now, length int64) {
	switch elapsed := now - e.turned; {
	case e.count == 0 || elapsed >= 2*length:
		*e = entities{window: windowA, turned: now}
	case elapsed >= length:
		e.keep(e.window)
		e.window ^= windowBits
		e.turned += length
	}
}

// find returns where the entity of a hash is, or where it belongs.
func (e *entities) find(hash uint64) (at int, known bool) {
	if len(e.slots) == 0 {
		return 0, false
	}
	mask := uint64(len(e.slots) - 1)
	for i := hash >> 2 & mask; ; i = (i + 1) & mask {
		switch s := e.slots[i]; {
		case s == 0:
			return int(i), false
		case s|windowBits == hash|windowBits:
			return int(i), true
		}
	}
}

// mark notes that the entity of a hash is written in this window. at and known are what find returned.
func (e *entities) mark(hash uint64, at int, known bool) {
	if !known {
		if e.count >= len(e.slots)/8*7 {
			e.grow()
			at, _ = e.find(hash)
		}
		e.count++
	}
	e.slots[at] = hash&^windowBits | e.window
}

func (e *entities) grow() {
	old := e.slots
	e.slots = make([]uint64, max(leastSlots, 2*len(old)))
	for _, s := range old {
		if s != 0 {
			at, _ := e.find(s)
			e.slots[at] = s
		}
	}
}

// keep forgets all but the entities of one window.
func (e *entities) keep(window uint64) {
	old := e.slots
	e.slots, e.count = nil, 0
	for _, s := range old {
		if s&windowBits == window {
			e.count++
		}
	}
	if e.count == 0 {
		return
	}
	size := leastSlots
	for e.count >= size/8*7 {
		size *= 2
	}
	e.slots = make([]uint64, size)
	for _, s := range old {
		if s&windowBits == window {
			at, _ := e.find(s)
			e.slots[at] = s
		}
	}
}
