package main

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/tidemark-go/tidemark/tenant"
)

// mostCached is how many elements of lists a cache holds, and a list has. Beyond it, the cache forgets all other lists.
const mostCached = 1_000_000

// cache keeps lists of each tenant for a time. Callers that ask for the same list share one load. The lists must not be changed.
// It is safe for concurrent use.
type cache[V any] struct {
	age time.Duration

	mu      sync.Mutex
	tenants map[tenant.ID]map[string]*cached[V]
	size    int
}

// cached is one list. Its fields besides done are set before done is closed.
type cached[V any] struct {
	done  chan struct{}
	value V
	size  int
	until time.Time
	err   error
}

func newCache[V any](age time.Duration) *cache[V] {
	return &cache[V]{age: age, tenants: map[tenant.ID]map[string]*cached[V]{}}
}

// get returns a list. Load reads it, and returns it with the number of its elements.
func (c *cache[V]) get(ctx context.Context, id tenant.ID, key string, load func(context.Context) (V, int, error)) (V, error) {
	for {
		entry, own := c.entry(id, key)
		if own {
			return c.load(ctx, id, key, entry, load)
		}
		select {
		case <-entry.done:
		case <-ctx.Done():
			var none V
			return none, context.Cause(ctx)
		}
		if entry.err == nil || !errors.Is(entry.err, context.Canceled) && !errors.Is(entry.err, context.DeadlineExceeded) {
			return entry.value, entry.err
		} // the caller that loaded has given up, and this one has not
	}
}

// entry returns the entry of a list, and whether the caller has to load it.
func (c *cache[V]) entry(id tenant.ID, key string) (entry *cached[V], own bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	entry = c.tenants[id][key]
	if entry != nil {
		select {
		case <-entry.done:
			if time.Now().Before(entry.until) {
				return entry, false
			}
			c.remove(id, key, entry)
		default:
			return entry, false
		}
	}
	entry = &cached[V]{done: make(chan struct{})}
	if c.tenants[id] == nil {
		c.tenants[id] = map[string]*cached[V]{}
	}
	c.tenants[id][key] = entry
	return entry, true
}

func (c *cache[V]) load(ctx context.Context, id tenant.ID, key string, entry *cached[V], load func(context.Context) (V, int, error)) (V, error) {
	began := time.Now()
	entry.value, entry.size, entry.err = load(ctx)
	entry.size++
	entry.until = began.Add(c.age)
	c.mu.Lock()
	defer c.mu.Unlock()
	close(entry.done)
	if c.tenants[id][key] != entry { // dropped in the meantime
		return entry.value, entry.err
	}
	c.size += entry.size
	if entry.err != nil {
		c.remove(id, key, entry)
	} else if c.size > mostCached {
		c.size, c.tenants = entry.size, map[tenant.ID]map[string]*cached[V]{id: {key: entry}}
	}
	return entry.value, entry.err
}

// remove removes an entry that is loaded.
func (c *cache[V]) remove(id tenant.ID, key string, entry *cached[V]) {
	c.size -= entry.size
	delete(c.tenants[id], key)
	if len(c.tenants[id]) == 0 {
		delete(c.tenants, id)
	}
}

// peek returns a list if it is there. A list that is being loaded is dropped instead: it may lack what the caller knows.
func (c *cache[V]) peek(id tenant.ID, key string) (value V, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	entry := c.tenants[id][key]
	if entry == nil {
		return value, false
	}
	select {
	case <-entry.done:
		return entry.value, true
	default:
		delete(c.tenants[id], key)
		return value, false
	}
}

// drop forgets a list, and one that is being loaded.
func (c *cache[V]) drop(id tenant.ID, key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if entry := c.tenants[id][key]; entry != nil {
		c.dropEntry(id, key, entry)
	}
}

// forget forgets all lists of a tenant.
func (c *cache[V]) forget(id tenant.ID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for key, entry := range c.tenants[id] {
		c.dropEntry(id, key, entry)
	}
}

func (c *cache[V]) dropEntry(id tenant.ID, key string, entry *cached[V]) {
	select {
	case <-entry.done:
		c.remove(id, key, entry)
	default:
		delete(c.tenants[id], key)
	}
}
