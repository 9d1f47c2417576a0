package inside

import (
	"context"

	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/internal/store/catalog"
	"github.com/tidemark-go/tidemark/internal/telemetry"
	"github.com/tidemark-go/tidemark/tenant"
)

// Package tsdb sets these functions when a program starts. The arguments of type any are values of tsdb, which imports this
// package; the comments name their types.
var (
	// OfStore returns what is inside a *tsdb.Store. Its error is tsdb.ErrClosed on a store that is closed.
	OfStore func(store any) (Store, error)
	// Watch returns what a *tsdb.Store reports its operations to, nil for none.
	Watch func(store any) *telemetry.Probe
	// OfRepository returns what is inside a *tsdb.Repository[T]. It does no I/O. Its error is why no call on the repository
	// can work.
	OfRepository func(repo any) (Repository, error)
	// OfDataset returns what a tsdb.Dataset says of itself.
	OfDataset func(dataset any) (Dataset, error)
	// Begin begins an operation on the rows of a *tsdb.Repository[T], of n events if it is batched.
	Begin func(ctx context.Context, repo any, name telemetry.Name, n int, batched bool) (context.Context, *telemetry.Op)
	// Add puts an event into the journal of a *tsdb.Writer. It waits for that if told, a func(tsdb.Outcome), is nil, and else
	// calls told with what became of the event.
	Add func(ctx context.Context, writer any, ev Event, told any) error
	// Sizes reads the catalogue of a *tsdb.Store, and returns a dataset of it for reading the sizes of a tenant's payloads.
	Sizes func(ctx context.Context, store any, dataset string, id tenant.ID) (Stored, error)
	// ReadOptions resolves a []tsdb.ReadOption of a call that reads buckets. It refuses a tsdb.Limit.
	ReadOptions func(opts any) (BucketOptions, error)
	// EntityAt returns the tsdb.Entity at a path of package rowkey.
	EntityAt func(path string) any
	// PathOf returns the path of a tsdb.Entity or a tsdb.Prefix.
	PathOf func(entity any) string

	unlimited func(repo any, single bool) any
)

// Stored is a dataset that the catalogue describes.
type Stored struct {
	Dataset    any   // its tsdb.Dataset
	Others     []any // those of the other datasets
	Repository any   // a *tsdb.Repository[int] whose values are the sizes of payloads, and which no limits hold
}

// BucketOptions are the options of a call that reads buckets.
type BucketOptions struct {
	Order       uint8 // a tsdb.Order
	Concurrency int   // 0 for the default
}

// SetUnlimited is for package tsdb, when a program starts.
func SetUnlimited(f func(repo any, single bool) any) { unlimited = f }

// Unlimited returns a *tsdb.Repository[T] that its tenant's limits do not hold, for what packages of this module read in the
// background. If single, all its calls go through the app profile of conditional writes, for what writes by what it reads.
func Unlimited[R any](repo R, single bool) R { return unlimited(repo, single).(R) }

// Package rollup sets these functions when a program starts. They are nil in a program without it, which has no rollups.
var (
	// Describe returns what a *rollup.Rollup[T] is to the catalogue, and false for any other value.
	Describe func(rollup any) (catalog.Rollup, bool)
	// Follows refuses a source of a *rollup.Rollup[T], nil for the points, whose buckets do not fill those of the rollup, or of
	// which one of the policies that it is kept by removes what a bucket is computed from before the bucket is closed.
	Follows func(rollup, from any, kept []gc.Policy) error
	// CheckSource refuses such policies for a rollup that only the catalogue describes.
	CheckSource func(r catalog.Rollup, kept []gc.Policy) error
)
