package lastvalue

import (
	"math/rand/v2"
	"sync/atomic"
)

// counter counts events of many goroutines, in cells that they seldom share.
type counter [8]struct {
	n atomic.Uint64
	_ [56]byte // pads to the end of the cache line
}

func (c *counter) add() { c[rand.Uint32()%uint32(len(c))].n.Add(1) }

func (c *counter) sum() (total uint64) {
	for i := range c {
		total += c[i].n.Load()
	}
	return total
}
