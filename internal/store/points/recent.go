package points

import (
	"hash/maphash"
	"sync"

	"github.com/tidemark-go/tidemark/tenant"
)

// Bounds of what Recent remembers, at about 50 bytes an entity, and up to 152 more in an outline.
const (
	recentDatasets = 1024    // of all tenants together
	recentEntities = 1 << 17 // of all datasets together, in equal shares
	mostEntities   = 4096    // of one tenant in one dataset
)

const (
	crowd      = 8    // reading this many rows costs about as much as one request
	wanted     = 3    // expected points in a range that does not begin at the newest point
	mostMisses = 3    // after this many ranges without a point, the entity is read alone
	aloneFor   = 1000 // number of calls in which such an entity is read alone
	aloneOnce  = 16   // the same after a request that was full or failed before it reached the entity
)

// Recent remembers the results of reads of many newest points, so that the next such read can ask for short ranges in
// one request. It affects how a read is made, never its result. Tenants share only the memory, in equal parts. The zero
// value is ready to use, and safe for concurrent use.
type Recent struct {
	mu       sync.Mutex
	datasets generations[recentKey, *recency]
}

type recentKey struct {
	tenant  tenant.ID
	dataset string
}

// of returns what is known of a tenant in a dataset.
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
	c.outline.limit(c.bound)
	return c
}

// recency is what is known of one tenant in one dataset.
type recency struct {
	mu       sync.Mutex
	bound    int
	entities generations[uint64, sighting] // by a hash of their paths
	outline  Outline
}

// sighting is the result of an entity's last read. Times are in units.
type sighting struct {
	newest int64  // time of its newest point; 0 for none
	reach  int64  // how long ago its range begins, if that is after the newest point; 0 means at the newest point
	alone  uint16 // number of calls in which the entity is still read alone
	misses uint8  // how often the range had no visible point
}

// seen is the result of one read of an entity. The zero value means that the entity could not be read.
type seen struct {
	read   bool
	newest int64 // time of its newest point; 0 for none
	missed bool  // its range had no visible point
	crowd  bool  // its range had more than crowd rows
	full   bool  // the request was full or failed before it reached the entity
	step   int64 // time between two rows of a crowd: the entity's own or, if the request was full, another entity's
}

var pathSeed = maphash.MakeSeed()

// plan returns the start of each entity's range in one request with others, or -1 for an entity that must be read alone
// because it is not known or its range is often wrong. A range begins at the newest known point, so it has that point
// and all later ones, however long the entity has been silent. If an earlier range had too many points, it begins where
// the last few points are expected.
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

// learn records the results of a call.
func (c *recency) learn(paths []string, found []seen, now int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range found {
		hash := maphash.String(pathSeed, paths[i])
		s, _ := c.entities.get(hash)
		switch {
		case found[i].read:
			s = s.after(&found[i], now)
		case found[i].full: // the shared request failed, and the entity's own read too: the entity may be the cause
			s.alone = aloneOnce
		default:
			continue
		}
		c.entities.set(hash, s, c.bound)
	}
}

// after returns what is known of an entity after another read.
func (s sighting) after(f *seen, now int64) sighting {
	s.newest = f.newest
	switch {
	case f.full && f.step == 0:
		s.alone = aloneOnce
	case f.missed && f.crowd: // rows of other programs
		s.alone = aloneFor
	case f.full || f.crowd:
		s.reach = max(0, now-f.newest) + wanted*max(1, f.step) // the point may be late, and so may the next ones
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

// generations is a map that forgets old keys. It holds the keys that were set last, at least half as many as its bound.
type generations[K comparable, V any] struct{ fresh, old map[K]V }

func (g *generations[K, V]) get(key K) (V, bool) {
	if v, ok := g.fresh[key]; ok {
		return v, true
	}
	v, ok := g.old[key]
	return v, ok
}

func (g *generations[K, V]) len() int { return len(g.fresh) + len(g.old) }

// set stores a value. Afterwards the map has at most bound keys, unless the bound has become smaller.
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
