package points

import (
	"hash/maphash"
	"sync"

	"github.com/tidemark-go/tidemark/tenant"
)

// Bounds of what Recent remembers, at about 50 bytes an entity.
const (
	recentDatasets = 1024    // of all tenants together
	recentEntities = 1 << 17 // which the datasets share equally
	mostEntities   = 4096    // of one tenant in one dataset
)

const (
	crowd      = 8    // rows of an entity that cost about as much as a request for its newest one
	wanted     = 3    // points that are expected in a range that does not begin at the newest one
	mostMisses = 3    // of an entity's range, before the entity is read alone
	aloneFor   = 1000 // calls
	aloneOnce  = 16   // calls, if a request was full, or failed, before it came to the entity
)

// Recent is what a store remembers of reads of many newest points, so that the next one can ask for short ranges in one
// request. It decides how a read is made, and never what it returns. Tenants share nothing but the memory, in equal parts.
// The zero value is ready, and safe for concurrent use.
type Recent struct {
	mu       sync.Mutex
	datasets generations[recentKey, *recency]
}

type recentKey struct {
	tenant  tenant.ID
	dataset string
}

// of returns what is remembered of a tenant in a dataset.
func (r *Recent) of(id tenant.ID, dataset string) *recency {
	r.mu.Lock()
	defer r.mu.Unlock()
	key := recentKey{id, dataset}
	c, ok := r.datasets.get(key)
	if !ok {
		c = &recency{}
	}
	r.datasets.set(key, c, recentDatasets)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.bound = min(mostEntities, recentEntities/r.datasets.len())
	return c
}

// recency is what is remembered of one tenant in one dataset.
type recency struct {
	mu       sync.Mutex
	bound    int
	entities generations[uint64, sighting] // by a hash of their paths
}

// sighting is how an entity was read last. Times are in units.
type sighting struct {
	newest int64  // time of its newest point; 0 for none
	reach  int64  // its range begins so long ago, if that is after the newest point; 0 for always at the newest point
	alone  uint16 // number of calls for which the entity is read by itself
	misses uint8  // how often there was no point within reach
}

// seen is how a call has found an entity. The zero value is of one that could not be read.
type seen struct {
	read   bool
	newest int64 // time of its newest point; 0 for none
	missed bool  // its range had no visible point
	crowd  bool  // its range had more than crowd rows
	full   bool  // the request was full, or failed, before it came to the entity
	step   int64 // time between two rows of a crowd: its own, or that of another entity if the request was full
}

var pathSeed = maphash.MakeSeed()

// plan returns from which time on each entity is to be read in one request with others, and -1 for one that is to be read
// alone: it is not known, or its range is often wrong.
//
// A range begins at the newest point that is known, so it has that point and what came since, however long the entity has
// been silent. If too much came since at an earlier call, it begins where the last few points are expected.
func (c *recency) plan(paths []string, now int64) []int64 {
	from := make([]int64, len(paths))
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, path := range paths {
		s, ok := c.entities.get(maphash.String(pathSeed, path))
		switch {
		case !ok || s.alone > 0:
			from[i] = -1
		case s.reach > 0:
			from[i] = max(s.newest, now-s.reach)
		default:
			from[i] = s.newest
		}
	}
	return from
}

// learn takes in how a call has found its entities.
func (c *recency) learn(paths []string, found []seen, now int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range found {
		hash := maphash.String(pathSeed, paths[i])
		s, _ := c.entities.get(hash)
		switch {
		case found[i].read:
			s = s.after(&found[i], now)
		case found[i].full: // neither the request nor its own read succeeded: it may have been the cause
			s.alone = aloneOnce
		default:
			continue
		}
		c.entities.set(hash, s, c.bound)
	}
}

// after returns what is remembered of an entity after a call.
func (s sighting) after(f *seen, now int64) sighting {
	s.newest = f.newest
	switch {
	case f.full && f.step == 0:
		s.alone = aloneOnce
	case f.missed && f.crowd: // rows of other programs
		s.alone = aloneFor
	case f.full || f.crowd:
		s.reach = max(0, now-f.newest) + wanted*max(1, f.step) // the point may be late, and so may the next ones be
	case f.missed && s.reach > 0:
		s.reach = 0
		if s.misses++; s.misses == mostMisses {
			s.misses, s.alone = 0, aloneFor
		}
	case s.alone > 0:
		s.alone--
	case s.misses > 0:
		s.misses--
	}
	return s
}

// generations is a map that forgets. It holds the keys that were set last, at least half as many as its bound.
type generations[K comparable, V any] struct{ fresh, old map[K]V }

func (g *generations[K, V]) get(key K) (V, bool) {
	if v, ok := g.fresh[key]; ok {
		return v, true
	}
	v, ok := g.old[key]
	return v, ok
}

func (g *generations[K, V]) len() int { return len(g.fresh) + len(g.old) }

// set remembers a value. At most bound are held after it, unless the bound has become smaller.
func (g *generations[K, V]) set(key K, v V, bound int) {
	if _, ok := g.fresh[key]; !ok && len(g.fresh) >= bound/2 {
		g.fresh, g.old = nil, g.fresh
	}
	if g.fresh == nil {
		g.fresh = make(map[K]V)
	}
	g.fresh[key] = v
	delete(g.old, key)
}
