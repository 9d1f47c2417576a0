package main

import (
	"hash/maphash"
	"sync"
	"time"

	"github.com/tidemark-go/tidemark/tenant"
)

// metadataCaches remember the metadata of metrics that were stored, because senders repeat it with each request. They
// are safe for concurrent use.
type metadataCaches struct {
	mu  sync.Mutex
	all map[tenant.ID]*metadataCache
}

// metadataCache is that of one tenant.
type metadataCache struct {
	mu     sync.Mutex
	seed   maphash.Seed
	stored map[uint64]uint64 // by the hash of the metric's name, that of its metadata: texts may be long
	until  time.Time         // then it is stored again, so that it does not expire before the samples do
}

const (
	metadataFor   = time.Hour
	mostMetadata  = 100_000 // metrics of a tenant; then all are stored again
	mostOfTenants = 10_000
)

func (c *metadataCaches) of(id tenant.ID) *metadataCache {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.all == nil || len(c.all) >= mostOfTenants && c.all[id] == nil {
		c.all = map[tenant.ID]*metadataCache{}
	}
	if c.all[id] == nil {
		c.all[id] = new(metadataCache)
	}
	return c.all[id]
}

func (c *metadataCaches) forget(id tenant.ID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.all, id)
}

// isNew reports whether the metadata of a metric has to be stored, and takes it as stored.
func (c *metadataCache) isNew(metric string, m storedMetadata, now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stored == nil || now.After(c.until) || len(c.stored) >= mostMetadata {
		c.seed, c.stored, c.until = maphash.MakeSeed(), map[uint64]uint64{}, now.Add(metadataFor)
	}
	name, hash := maphash.String(c.seed, metric), maphash.Comparable(c.seed, m)
	if last, ok := c.stored[name]; ok && last == hash {
		return false
	}
	c.stored[name] = hash
	return true
}
