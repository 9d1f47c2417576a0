package tsdb

import (
	"github.com/tidemark-go/tidemark/internal/catalog"
	"github.com/tidemark-go/tidemark/internal/inside"
)

// Rollup is implemented by every *rollup.Rollup, whatever its type, for SchemaOptions.Rollups.
type Rollup interface {
	// Name returns the rollup's name.
	Name() string

	Describe(inside.Key) catalog.Rollup
}
