package inside

import (
	"context"
	"time"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/internal/store/catalog"
	"github.com/tidemark-go/tidemark/internal/store/dataset"
	"github.com/tidemark-go/tidemark/internal/store/nest"
	"github.com/tidemark-go/tidemark/internal/store/points"
	"github.com/tidemark-go/tidemark/internal/store/rowkey"
)

// Repository is the internals of a repository: one tenant's rows of one dataset, and of its rollups. Rows are built
// only from its spaces.
type Repository struct {
	*points.Rows
	// Allow refuses a call for another tenant in ctx, for an erased one, or on a closed store. Each call uses it.
	Allow   func(ctx context.Context) error
	Rollups []Rollup // in the schema's order
	// Numbers read the fields that measures of the rollups are declared by, as numbers: by field, then by tag.
	Numbers map[string][]func(payload []byte) (codec.Value, error)
}

// Rollup is a rollup of a dataset, and the spaces of its rows. Times in their keys are in milliseconds.
type Rollup struct {
	catalog.Rollup
	Definition Face[*nest.Definition] // the value in the schema
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
