package lastvalue

import "github.com/tidemark-go/tidemark/internal/rowkey"

// DropTenants forgets all entities of the tenants that are true in names, and keeps what is being read of them from being
// kept. It looks at every entry, once.
func (c *Cache) DropTenants(names map[string]bool) {
	if c == nil || len(names) == 0 {
		return
	}
	c.dropWhere(func(id rowkey.ID) bool { return names[id.Tenant()] })
}
