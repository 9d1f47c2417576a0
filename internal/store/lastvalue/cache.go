package lastvalue

import (
	"context"
	"hash/maphash"
	"sync"
	"time"

	"github.com/tidemark-go/tidemark/internal/store/rowkey"
)

// Options are the limits of a cache. All must be above 0.
type Options struct {
	Entries int
	Bytes   int64
	MaxAge  time.Duration
	// Closed is the error that reads cancelled by Close match.
	Closed error
}

// MaxPayload is the largest payload that is cached, in bytes: larger ones would displace many small ones.
const MaxPayload = 64 << 10

// stripes is how many parts the keys are spread over, so that writers and waiting readers seldom contend.
const stripes = 64

// Cache holds the newest points of entities. A nil Cache holds nothing; its methods that record writes do nothing. It
// is safe for concurrent use. Until Close it runs one goroutine, and one for each running read.
type Cache struct {
	entries entries
	maxAge  time.Duration
	errDone error
	seed    maphash.Seed
	stripes [stripes]stripe

	base context.Context
	stop context.CancelCauseFunc
	wg   sync.WaitGroup // running reads

	hits, misses, shared counter
}

// stripe serializes the events of a part of the entities. This order makes a finished write visible: the write is
// recorded under the same lock under which reads start and cache their results.
type stripe struct {
	mu      sync.Mutex
	closed  bool
	flights map[rowkey.ID]*flight // running reads that other callers may still join
}

// New returns an empty cache.
func New(o Options) *Cache {
	base, stop := context.WithCancelCause(context.Background())
	c := &Cache{
		entries: newEntries(o),
		maxAge:  o.MaxAge, errDone: o.Closed, seed: maphash.MakeSeed(), base: base, stop: stop,
	}
	for i := range c.stripes {
		c.stripes[i].flights = map[rowkey.ID]*flight{}
	}
	return c
}

// Since returns the earliest start of a read that may answer a call made now with the given staleness. No answer is
// older than the cache's own MaxAge.
func (c *Cache) Since(stale time.Duration) time.Time { return time.Now().Add(-min(stale, c.maxAge)) }

// Find returns the cached point of an entity, if a read that started at since or later returned it for the same layout,
// and nil otherwise. A caller that uses it as an answer calls Hit.
func (c *Cache) Find(id rowkey.ID, layout string, since time.Time) *Newest {
	n, ok := c.entries.GetIfPresent(id)
	if !ok || n.Layout != layout || n.asOf.Before(since) {
		return nil
	}
	return n
}

// Hit counts an answer from Find.
func (c *Cache) Hit() { c.hits.add() }

// Stats describes a cache's contents and counts its work.
type Stats struct {
	Hits, Misses, Shared uint64
	Entries              int
	Bytes                uint64
}

// Stats returns the cache's contents and counters.
func (c *Cache) Stats() Stats {
	c.entries.CleanUp()
	return Stats{
		Hits: c.hits.sum(), Misses: c.misses.sum(), Shared: c.shared.sum(),
		Entries: c.entries.EstimatedSize(), Bytes: c.entries.WeightedSize(),
	}
}

// Close cancels running reads, waits until they have ended, and drops everything. Nothing is cached after it.
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
