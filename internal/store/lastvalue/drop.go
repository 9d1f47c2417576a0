package lastvalue

import "github.com/tidemark-go/tidemark/internal/store/rowkey"

// DropTenants forgets everything of some tenants, and keeps what is being read of them from being kept. It looks at every entry.
func (c *Cache) DropTenants(of func(tenant string) bool) {
	if c != nil {
		c.dropWhere(func(id rowkey.ID) bool { return of(id.Tenant()) })
	}
}
