// Package points writes, reads and deletes the points of one tenant in one dataset, without their Go type: their rows,
// heads, dirty marks of rollups, and the last-value cache.
package points

import (
	"sync/atomic"

	"github.com/tidemark-go/tidemark/internal/cursor"
	"github.com/tidemark-go/tidemark/internal/store/fieldlist"
	"github.com/tidemark-go/tidemark/internal/store/lastvalue"
	"github.com/tidemark-go/tidemark/internal/store/tenancy"
)

// Table is the table of a store, with what its reads and writes share.
type Table struct {
	*tenancy.Tenancy
	Hedges  HedgeBudget
	Recent  Recent
	Cache   *lastvalue.Cache // nil for none
	Cursors cursor.Box
	Feed    Feed
	Fields  *fieldlist.Recorder

	tokens atomic.Int32 // what RecognizesTokens found out; 0 is nothing yet
}

// DropTenants forgets what is in memory of tenants whose rows may be gone.
func (s *Table) DropTenants(of func(tenant string) bool) {
	s.Cache.DropTenants(of)
	s.Fields.DropTenants(of)
}
