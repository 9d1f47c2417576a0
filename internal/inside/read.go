package inside

import (
	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/store/prefix"
	"github.com/tidemark-go/tidemark/internal/telemetry"
)

// PrefixRead is a read under a prefix that has begun.
type PrefixRead struct {
	*prefix.Read
	Op    *telemetry.Op
	Limit int    // how many points the caller asked for; -1 for all
	Done  func() // returns the read's share of the tenant's limits; nil if it has none
}

// End ends the read with its error. The caller defers it, also if the read did not begin.
func (r *PrefixRead) End(err error) {
	if r.Done != nil {
		r.Done()
	}
	r.Op.End(err)
}

// Route selects the app profile of calls, as methods of *bt.Table do: (*bt.Table).SingleCluster for callers that write
// what follows from their reads, (*bt.Table).BulkReads for long reads that decide nothing, or nil for that of the
// repository.
type Route func(*bt.Table) *bt.Table
