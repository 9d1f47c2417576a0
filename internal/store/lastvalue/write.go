package lastvalue

import (
	"bytes"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/internal/store/rowkey"
)

// Mark stands for one call that writes, whose points are applied in their order. It tells the writes of one entity that
// others came in between from those that were alone: only of the latter is it known which one the table holds.
type Mark struct{ _ byte }

// Begin notes that a write of an entity is about to be sent.
func (c *Cache) Begin(m *Mark, id rowkey.ID) {
	if c == nil {
		return
	}
	s := c.stripe(id)
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := c.known(id); n != nil {
		n.last = m
	}
}

// Written is a point that was stored.
type Written struct {
	Layout  string
	Units   int64
	Cell    bigtable.Timestamp
	Column  int    // where the payload stands
	Payload []byte // it is copied where it is kept
}

// Stored notes that a write which Begin was told of has ended and is stored. Where the newest point was known, and no other
// write of the entity has begun since, it still is.
func (c *Cache) Stored(m *Mark, id rowkey.ID, w Written) {
	if c == nil {
		return
	}
	s := c.stripe(id)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.overtake(id)
	n := c.known(id)
	switch {
	case n == nil, n.newer(w.Layout, w.Units):
	case n.Layout != w.Layout, n.last != m:
		c.entries.Invalidate(id)
	default:
		c.keep(id.Clone(), &Newest{
			Layout: w.Layout, Found: true, Units: w.Units, Cell: w.Cell, Column: w.Column, Payload: bytes.Clone(w.Payload),
			asOf: n.asOf, // of what others have written since, nothing is known
			last: m,
		})
	}
}

// Changed notes that a write of the point at a time has ended, and that what is stored there now is not known.
func (c *Cache) Changed(id rowkey.ID, layout string, units int64) {
	if c == nil {
		return
	}
	s := c.stripe(id)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.overtake(id)
	if n := c.known(id); n != nil && !n.newer(layout, units) {
		c.entries.Invalidate(id)
	}
}

// Drop notes that any points of an entity may have changed.
func (c *Cache) Drop(id rowkey.ID) {
	if c == nil {
		return
	}
	s := c.stripe(id)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.overtake(id)
	c.entries.Invalidate(id)
}

// DropBelow notes that any points of the entities below a prefix may have changed. It looks at every entry.
func (c *Cache) DropBelow(space rowkey.Space, path string) {
	if c == nil {
		return
	}
	c.dropWhere(func(id rowkey.ID) bool { return id.Below(space, path) })
}

// DropTenants removes the entries of some tenants, and reads of them that have begun store nothing. It looks at every entry.
func (c *Cache) DropTenants(of func(tenant string) bool) {
	if c != nil {
		c.dropWhere(func(id rowkey.ID) bool { return of(id.Tenant()) })
	}
}

func (c *Cache) dropWhere(of func(rowkey.ID) bool) {
	for i := range c.stripes {
		s := &c.stripes[i]
		s.mu.Lock()
		for id := range s.flights {
			if of(id) {
				s.overtake(id)
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

// overtake keeps the read of an entity that is under way from being kept, and from being joined. The stripe is locked.
func (s *stripe) overtake(id rowkey.ID) {
	if f := s.flights[id]; f != nil {
		f.stale = true
		delete(s.flights, id)
	}
}

// newer reports whether n is certainly a point behind the time at units.
func (n *Newest) newer(layout string, units int64) bool {
	return n.Found && n.Layout == layout && n.Units > units
}
