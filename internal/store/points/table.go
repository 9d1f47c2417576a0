// Package points writes, reads and deletes the points of one tenant in one dataset, without their Go type: their rows,
// heads, dirty marks of rollups, and the last-value cache.
package points

import (
	"sync/atomic"

	"github.com/tidemark-go/tidemark/internal/cursor"
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

	tokens atomic.Int32 // what RecognizesTokens found out; 0 is nothing yet
}
