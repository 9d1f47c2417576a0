package engine

import (
	"hash/maphash"
	"math/bits"
	"sync"
)

// rowStripes is the number of locks that all rows share. It is a multiple of 64.
const rowStripes = 1024

// rowLocks serializes writes to one row. A write that only sets cells holds its rows' locks shared: Pebble then orders
// two of them. A write that reads first holds them exclusively until its result is visible.
type rowLocks [rowStripes]sync.RWMutex

// rowLockSet is the set of locks of a request's rows. They are locked in order, so that two requests cannot deadlock.
type rowLockSet [rowStripes / 64]uint64

// rowHash returns the hash of a row, given by its row key. The row's lock is the hash modulo rowStripes.
func (e *Engine) rowHash(table uint32, rowKey []byte) uint64 {
	return maphash.Bytes(e.seed, rowKey) ^ uint64(table)*0x9E3779B97F4A7C15
}

// add adds a row, given by its hash.
func (s *rowLockSet) add(hash uint64) {
	stripe := hash % rowStripes
	s[stripe/64] |= 1 << (stripe % 64)
}

func (l *rowLocks) lock(s *rowLockSet, exclusive bool) {
	for i, word := range s {
		for ; word != 0; word &= word - 1 {
			m := &l[i*64+bits.TrailingZeros64(word)]
			if exclusive {
				m.Lock()
			} else {
				m.RLock()
			}
		}
	}
}

func (l *rowLocks) unlock(s *rowLockSet, exclusive bool) {
	for i, word := range s {
		for ; word != 0; word &= word - 1 {
			m := &l[i*64+bits.TrailingZeros64(word)]
			if exclusive {
				m.Unlock()
			} else {
				m.RUnlock()
			}
		}
	}
}
