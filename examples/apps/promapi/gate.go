package main

import (
	"sync"

	"github.com/tidemark-go/tidemark/tenant"
)

// gate bounds how many requests are under way, of all tenants and of each one. It is safe for concurrent use.
type gate struct {
	mu              sync.Mutex
	free, perTenant int
	held            map[tenant.ID]int
}

func newGate(all, perTenant int) *gate {
	return &gate{free: all, perTenant: perTenant, held: map[tenant.ID]int{}}
}

// enter reports whether a tenant may begin a request. If it may, leave ends it.
func (g *gate) enter(id tenant.ID) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.free == 0 || g.held[id] >= g.perTenant {
		return false
	}
	g.free--
	g.held[id]++
	return true
}

func (g *gate) leave(id tenant.ID) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.free++
	if g.held[id]--; g.held[id] == 0 {
		delete(g.held, id)
	}
}
