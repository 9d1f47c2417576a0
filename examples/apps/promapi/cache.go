package main

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/tidemark-go/tidemark/tenant"
)

// mostCached is how many elements of lists a cache holds, and a list has. Beyond it, the lists of the tenant that has
// most of them are forgotten.
const mostCached = 1_000_000

// cache keeps lists of each tenant for a time. Callers that ask for the same list share one load. The lists must not be
// changed. It is safe for concurrent use.
type cache[V any] struct {
	age time.Duration

	mu      sync.Mutex
	tenants map[tenant.ID]map[string]*cached[V]
	size    int
	swept   time.Time // when lists that are too old were forgotten
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
		if !entry.loaded() || time.Now().Before(entry.until) {
			return entry, false
		}
		c.remove(id, key, entry)
	}
	entry = &cached[V]{done: make(chan struct{})}
	if c.tenants[id] == nil {
		c.tenants[id] = map[string]*cached[V]{}
	}
	c.tenants[id][key] = entry
	return entry, true
}

// errLoad is the error for callers that wait for a load which panics.
var errLoad = errors.New("a list could not be loaded")

func (c *cache[V]) load(ctx context.Context, id tenant.ID, key string, entry *cached[V], load func(context.Context) (V, int, error)) (V, error) {
	began := time.Now()
	entry.err = errLoad
	defer func() { // also after a panic
		entry.until = began.Add(c.age)
		c.mu.Lock()
		defer c.mu.Unlock()
		close(entry.done)
		c.keep(id, key, entry)
	}()
	entry.value, entry.size, entry.err = load(ctx)
	entry.size += 1 + len(key)/bytesOfElement
	return entry.value, entry.err
}

// bytesOfElement is the length of a key that counts as an element, because clients choose the keys.
const bytesOfElement = 100

// keep counts an entry that is loaded, or removes it after an error, and makes room.
func (c *cache[V]) keep(id tenant.ID, key string, entry *cached[V]) {
	if c.tenants[id][key] != entry { // dropped in the meantime
		return
	}
	c.size += entry.size
	if entry.err != nil {
		c.remove(id, key, entry)
		return
	}
	if now := time.Now(); now.Sub(c.swept) >= c.age || c.size > mostCached {
		c.swept = now
		c.removeAll(func(_ tenant.ID, old *cached[V]) bool { return !now.Before(old.until) })
	}
	for c.size > mostCached {
		most, before := c.greediest(), c.size
		c.removeAll(func(of tenant.ID, old *cached[V]) bool { return of == most && old != entry })
		if c.size == before {
			c.remove(id, key, entry)
		}
	}
}

// removeAll removes the loaded entries that match.
func (c *cache[V]) removeAll(matches func(of tenant.ID, entry *cached[V]) bool) {
	for id, entries := range c.tenants {
		for key, entry := range entries {
			if entry.loaded() && matches(id, entry) {
				c.remove(id, key, entry)
			}
		}
	}
}

// greediest returns the tenant with the most elements.
func (c *cache[V]) greediest() (most tenant.ID) {
	size := -1
	for id, entries := range c.tenants {
		n := 0
		for _, entry := range entries {
			if entry.loaded() {
				n += entry.size
			}
		}
		if n > size {
			most, size = id, n
		}
	}
	return most
}

func (e *cached[V]) loaded() bool {
	select {
	case <-e.done:
		return true
	default:
		return false
	}
}

// remove removes an entry that is loaded.
func (c *cache[V]) remove(id tenant.ID, key string, entry *cached[V]) {
	c.size -= entry.size
	delete(c.tenants[id], key)
	if len(c.tenants[id]) == 0 {
		delete(c.tenants, id)
	}
}

// peek returns a list if it is there. A list that is being loaded is dropped instead: it may lack what the caller
// knows.
func (c *cache[V]) peek(id tenant.ID, key string) (value V, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	entry := c.tenants[id][key]
	if entry == nil {
		return value, false
	}
	if !entry.loaded() {
		delete(c.tenants[id], key)
		return value, false
	}
	return entry.value, true
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
	if entry.loaded() {
		c.remove(id, key, entry)
	} else {
		delete(c.tenants[id], key)
	}
}
