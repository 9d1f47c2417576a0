package inside

import (
	"context"
	"time"

	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/store/catalog"
	"github.com/tidemark-go/tidemark/internal/store/dataset"
	"github.com/tidemark-go/tidemark/internal/store/rowkey"
)

// Repository is what is inside a repository: one tenant's rows of one dataset. Rows are made from its spaces only.
type Repository struct {
	Store     Store
	Dataset   string
	Fields    []string
	Salts     int
	Space     rowkey.Space // of the points; its CheckPath and CheckPrefix hold for the rollups' rows too
	Precision rowkey.Precision
	Rollups   []Rollup // as the schema lists them
	// RollupAge returns how long the tenant's rollups are kept at most by its class; 0 for as long as their own classes say.
	// ShortestRollupAge is the shortest of all classes, 0 for none.
	RollupAge         func(context.Context) (time.Duration, error)
	ShortestRollupAge time.Duration
	// Whole returns the oldest time, in whole milliseconds, from which on no point has expired in any class; 0 where none does.
	Whole func(now time.Time) int64
	// Arrival refuses a time that is too late or too early to be written by the schema's limits; what has expired passes.
	Arrival func(t, now time.Time) error
	// Admit refuses a call that must not be made, for another tenant in ctx or a store that is closed. Each call asks it.
	Admit func(ctx context.Context) error
	// AdmitEntity refuses, with tsdb.ErrErased, an entity that is erased. Whoever writes of its own accord asks it before each
	// request that writes.
	AdmitEntity func(path string) error
	// Table is the table as the tenant may see it.
	Table *bt.Table
	// Take refuses what must not be written of an entity, whose path has passed CheckPath, and counts it against the tenant's
	// limits. Each event that is to be added asks it, after all other checks.
	Take func(path string, bytes int) error
}

// Rollup is a rollup of a dataset, and where its rows are. Times in their keys are in milliseconds.
type Rollup struct {
	catalog.Rollup
	Definition any // as the schema was given it
	Rows       rowkey.Space
	Marks      rowkey.Space // of a derived one
	Families   dataset.RollupFamilies
	Age        time.Duration // of the retention class, or by that of the tenant, from a bucket's start
	Bounded    bool          // it has one
}

// Within returns the rollup as it is kept for some time at most; 0 for as long as its class says.
func (r Rollup) Within(age time.Duration) Rollup {
	if age > 0 && (!r.Bounded || age < r.Age) {
		r.Age, r.Bounded = age, true
	}
	return r
}

// Dataset is what a schema says of its dataset.
type Dataset struct {
	Name      string
	Fields    []string
	Salts     int
	Precision rowkey.Precision
	Rollups   []catalog.Rollup
	Entry     catalog.Dataset // what the catalogue is to know of it
	Shape     *dataset.Dataset
}
