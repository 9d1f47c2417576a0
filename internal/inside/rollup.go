package inside

import (
	"context"
	"time"

	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/store/catalog"
	"github.com/tidemark-go/tidemark/internal/store/dataset"
	"github.com/tidemark-go/tidemark/internal/store/rowkey"
)

// Repository is the internals of a repository: one tenant's rows of one dataset. Rows are built only from its spaces.
type Repository struct {
	Store     Store
	Dataset   string
	Fields    []string
	Salts     int
	Space     rowkey.Space // of the points; its CheckPath and CheckPrefix cover the rollups' rows too
	Precision rowkey.Precision
	Rollups   []Rollup // in the schema's order
	// RollupAge returns how long the tenant's class keeps rollups at most; 0 means as long as the rollups' own classes
	// say. ShortestRollupAge is the shortest of all classes; 0 means none.
	RollupAge         func(context.Context) (time.Duration, error)
	ShortestRollupAge time.Duration
	// Whole returns the earliest time, in whole milliseconds, from which on no point has expired in any class; 0 if
	// points never expire.
	Whole func(now time.Time) int64
	// Arrival refuses a time that the schema's MaxLate or MaxFuture does not allow; it accepts expired times.
	Arrival func(t, now time.Time) error
	// Admit refuses a call for another tenant in ctx or on a closed store. Each call uses it.
	Admit func(ctx context.Context) error
	// AdmitEntity refuses an erased entity with tsdb.ErrErased. Background writers call it before each request that
	// writes.
	AdmitEntity func(path string) error
	// Table is the table as the tenant may see it.
	Table *bt.Table
	// Take refuses a write for an entity that must not be written, and counts the write against the tenant's limits.
	// The path has passed CheckPath. Call it for each event to add, after all other checks.
	Take func(path string, bytes int) error
}

// Rollup is a rollup of a dataset, and the spaces of its rows. Times in their keys are in milliseconds.
type Rollup struct {
	catalog.Rollup
	Definition any // the value in the schema
	Rows       rowkey.Space
	Marks      rowkey.Space // for a derived rollup
	Families   dataset.RollupFamilies
	Age        time.Duration // by the retention class or the tenant's, counted from a bucket's start
	Bounded    bool          // Age is set
}

// Within returns the rollup with a maximum age; 0 means as long as its class says.
func (r Rollup) Within(age time.Duration) Rollup {
	if age > 0 && (!r.Bounded || age < r.Age) {
		r.Age, r.Bounded = age, true
	}
	return r
}

// Dataset is a schema's definition of its dataset.
type Dataset struct {
	Name      string
	Fields    []string
	Salts     int
	Precision rowkey.Precision
	Rollups   []catalog.Rollup
	Entry     catalog.Dataset // its description for the catalogue
	Shape     *dataset.Dataset
}
