package lastvalue

import "github.com/tidemark-go/tidemark/internal/rowkey"

// DropAll forgets everything, and keeps what is being read from being kept.
func (c *Cache) DropAll() {
	if c != nil {
		c.dropWhere(func(rowkey.ID) bool { return true })
	}
}
