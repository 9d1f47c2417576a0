package inside

import (
	"time"

	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/cursor"
	"github.com/tidemark-go/tidemark/internal/store/below"
	"github.com/tidemark-go/tidemark/internal/store/catalog"
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

// Package rollup sets these functions when a program starts. They are nil in a program without it, which has no
// rollups.
var (
	// Describe returns the catalogue's description of a *rollup.Rollup[T], and false for any other value.
	Describe func(rollup any) (catalog.Rollup, bool)
	// Follows refuses a source of a *rollup.Rollup[T]; a nil source means the points. It refuses if the source's
	// buckets are not each inside one bucket of the rollup, or if one of kept, the policies of the source, removes the
	// source of a bucket before the bucket is closed.
	Follows func(rollup, from any, kept []gc.Policy) error
	// CheckSource refuses such policies for a rollup that only the catalogue describes.
	CheckSource func(r catalog.Rollup, kept []gc.Policy) error
	// RollupFromCatalog makes a new *rollup.Rollup[T] that of an entry of the catalogue. It lacks the functions of measures. fields
	// says that the schema reads the fields of all payloads.
	RollupFromCatalog func(rollup any, entry catalog.Rollup, fields bool) error
	// WidestBucket returns how long the longest bucket of a *rollup.Rollup[T] is; 0 if only its stored buckets can be read.
	WidestBucket func(rollup any) time.Duration
)
