package lastvalue

import (
	"bytes"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/internal/reach"
	"github.com/tidemark-go/tidemark/internal/store/rowkey"
)

// Mark identifies one writing call, whose points are applied in their order. It separates an entity's writes during
// which another call wrote from those without one: only after the latter is it known which write the table holds.
type Mark struct{ _ byte }

// Begin records that a write of an entity is about to be sent.
func (c *Cache) Begin(m *Mark, id rowkey.ID) {
	c.locked(id, func(*stripe) {
		if n := c.entries.known(id); n != nil {
			n.last = m
		}
	})
}

// locked calls change with the stripe of an entity, locked. Nil calls nothing.
func (c *Cache) locked(id rowkey.ID, change func(*stripe)) {
	if c == nil {
		return
	}
	s := c.stripe(id)
	s.mu.Lock()
	defer s.mu.Unlock()
	change(s)
}

// Written is a point that was stored.
type Written struct {
	Layout  string
	Units   int64
	Cell    bigtable.Timestamp
	Column  int    // the index of the payload's column
	Payload []byte // copied when cached
}

// Stored records that a write, announced by Begin, has ended and is stored. If the newest point was known, and no other
// write of the entity has begun since, it stays known.
func (c *Cache) Stored(m *Mark, id rowkey.ID, w Written) {
	c.locked(id, func(s *stripe) {
		s.detach(id)
		n := c.entries.known(id)
		switch {
		case n == nil, n.newer(w.Layout, w.Units):
		case n.Layout != w.Layout, n.last != m:
			c.entries.Invalidate(id)
		default:
			c.keep(id.Clone(), &Newest{
				Layout: w.Layout, Found: true, Units: w.Units, Cell: w.Cell, Column: w.Column, Payload: bytes.Clone(w.Payload),
				asOf: n.asOf, // writes by others since then are unknown
				last: m,
			})
		}
	})
}

// Changed records that a write of the point at a time has ended, and that the stored result is not known.
func (c *Cache) Changed(id rowkey.ID, layout string, units int64) {
	c.locked(id, func(s *stripe) {
		s.detach(id)
		if n := c.entries.known(id); n != nil && !n.newer(layout, units) {
			c.entries.Invalidate(id)
		}
	})
}

// Drop records that any points of an entity may have changed.
func (c *Cache) Drop(id rowkey.ID) {
	c.locked(id, func(s *stripe) {
		s.detach(id)
		c.entries.Invalidate(id)
	})
}

// DropBelow records that any points of the entities below a prefix may have changed. It looks at every entry.
func (c *Cache) DropBelow(space rowkey.Space, path string) {
	c.dropWhere(func(id rowkey.ID) bool { return id.Below(space, path) })
}

// DropTenants drops all entries of some tenants, and keeps running reads of them from being cached. It looks at every
// entry.
func (c *Cache) DropTenants(of func(tenant string) bool) {
	c.dropWhere(func(id rowkey.ID) bool { return of(id.Tenant()) })
}

func (c *Cache) dropWhere(of func(rowkey.ID) bool) {
	if c == nil {
		return
	}
	for i := range c.stripes {
		s := &c.stripes[i]
		s.mu.Lock()
		for id := range s.flights {
			if of(id) {
				s.detach(id)
			}
		}
		s.mu.Unlock()
	}
	for id := range c.entries.Keys() {
		if of(id) {
			c.Drop(id)
		}
	}
}

// detach makes sure that the running read of an entity is neither cached nor joined. The stripe is locked.
func (s *stripe) detach(id rowkey.ID) {
	if f := s.flights[id]; f != nil {
		reach.Point(reach.StaleRead)
		f.stale = true
		delete(s.flights, id)
	}
}

// newer reports whether n is certainly a point later than units.
func (n *Newest) newer(layout string, units int64) bool {
	return n.Found && n.Layout == layout && n.Units > units
}
