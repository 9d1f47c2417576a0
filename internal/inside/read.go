package inside

import (
	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/cursor"
	"github.com/tidemark-go/tidemark/internal/store/below"
	"github.com/tidemark-go/tidemark/internal/store/dataset"
)

// BelowRead is a read below a prefix that has begun. P is a tsdb.Point[T].
type BelowRead[P any] struct {
	*below.Read
	Limit  int // how many points the caller asked for; -1 for all
	Decode func(dataset.Hit) (P, error)
	Scope  cursor.Scope // of a cursor, without its kind
	// Cursors writes and reads cursors.
	Cursors cursor.Box
	Done    func() // ends the read
}

// Route selects the app profile of calls, as methods of *bt.Table do: (*bt.Table).SingleCluster for callers that write what follows from
// their reads, (*bt.Table).BulkReads for long reads that decide nothing, or nil for that of the repository.
type Route func(*bt.Table) *bt.Table
