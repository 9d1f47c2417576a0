package lastvalue

import "github.com/tidemark-go/tidemark/internal/rowkey"

// DropTenant forgets all entities of a tenant, and keeps what is being read of them from being kept. It looks at every entry.
func (c *Cache) DropTenant(tenant string) {
	if c == nil {
		return
	}
	c.dropWhere(func(id rowkey.ID) bool { return id.Tenant() == tenant })
}
