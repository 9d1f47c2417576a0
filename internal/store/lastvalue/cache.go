package lastvalue

import (
	"context"
	"hash/maphash"
	"math"
	"sync"
	"time"

	"github.com/maypok86/otter/v2"

	"github.com/tidemark-go/tidemark/internal/store/rowkey"
)

// Options are what a cache may hold. All are above 0.
type Options struct {
	Entries int
	Bytes   int64
	MaxAge  time.Duration
	// Closed is matched by the error of reads that Close breaks off.
	Closed error
}

// MaxPayload is the size in bytes up to which payloads are kept: larger ones would push many small ones out.
const MaxPayload = 64 << 10

// stripes is how many parts the keys are spread over, so that those who write and those who wait seldom meet.
const stripes = 64

// Cache holds the newest points of entities. A nil Cache holds nothing: its methods that note writes may be called all the
// same. It is safe for concurrent use. It runs one goroutine, and one for each read under way, until Close.
type Cache struct {
	entries *otter.Cache[rowkey.ID, *Newest]
	maxAge  time.Duration
	errDone error
	seed    maphash.Seed
	stripes [stripes]stripe

	base context.Context
	stop context.CancelCauseFunc
	wg   sync.WaitGroup // reads under way

	hits, misses, shared counter
}

// stripe orders what happens to some of the entities. The order is what makes a write that has ended visible: it is
// noted under the lock under which reads start and keep what they have read.
type stripe struct {
	mu      sync.Mutex
	closed  bool
	flights map[rowkey.ID]*flight // reads under way that others may still join
}

// New returns an empty cache.
func New(o Options) *Cache {
	least := o.Bytes / int64(o.Entries) // counted for the smallest entry, so that the bound in bytes is one in entries too
	base, stop := context.WithCancelCause(context.Background())
	c := &Cache{
		entries: otter.Must(&otter.Options[rowkey.ID, *Newest]{
			MaximumWeight: uint64(o.Bytes),
			Weigher: func(id rowkey.ID, n *Newest) uint32 {
				return uint32(min(max(1, least, int64(id.Len()+n.bytes())), math.MaxUint32))
			},
			ExpiryCalculator: otter.ExpiryWriting[rowkey.ID, *Newest](o.MaxAge),
			Executor:         func(f func()) { f() },
		}),
		maxAge: o.MaxAge, errDone: o.Closed, seed: maphash.MakeSeed(), base: base, stop: stop,
	}
	for i := range c.stripes {
		c.stripes[i].flights = map[rowkey.ID]*flight{}
	}
	return c
}

// Since returns the time at which a read must have been started to answer a call that is made now and takes an answer of
// that staleness. No answer is older than the cache's own MaxAge.
func (c *Cache) Since(stale time.Duration) time.Time { return time.Now().Add(-min(stale, c.maxAge)) }

// Find returns what is known of an entity, by a read that was not started before since, as the layout has it; nil where
// nothing is. Whoever takes it for an answer calls Hit.
func (c *Cache) Find(id rowkey.ID, layout string, since time.Time) *Newest {
	n, ok := c.entries.GetIfPresent(id)
	if !ok || n.Layout != layout || n.asOf.Before(since) {
		return nil
	}
	return n
}

// Hit counts an answer that Find has given.
func (c *Cache) Hit() { c.hits.add() }

// Stats are what a cache holds and has done.
type Stats struct {
	Hits, Misses, Shared uint64
	Entries              int
	Bytes                uint64
}

// Stats returns what the cache holds and has done.
func (c *Cache) Stats() Stats {
	c.entries.CleanUp()
	return Stats{
		Hits: c.hits.sum(), Misses: c.misses.sum(), Shared: c.shared.sum(),
		Entries: c.entries.EstimatedSize(), Bytes: c.entries.WeightedSize(),
	}
}

// Close breaks off the reads under way, waits until they have ended, and drops everything. Nothing is kept after it.
func (c *Cache) Close() {
	if c == nil {
		return
	}
	for i := range c.stripes {
		s := &c.stripes[i]
		s.mu.Lock()
		s.closed = true
		s.mu.Unlock()
	}
	c.stop(c.errDone)
	c.wg.Wait()
	c.entries.InvalidateAll()
	c.entries.StopAllGoroutines()
}

func (c *Cache) stripe(id rowkey.ID) *stripe {
	return &c.stripes[maphash.Comparable(c.seed, id)%stripes]
}

// known returns the entry of an entity without counting as a use of it.
func (c *Cache) known(id rowkey.ID) *Newest {
	e, ok := c.entries.GetEntryQuietly(id)
	if !ok {
		return nil
	}
	return e.Value
}
