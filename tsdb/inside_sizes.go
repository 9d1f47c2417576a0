package tsdb

import (
	"context"
	"fmt"

	"github.com/tidemark-go/tidemark/internal/inside"
	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/store/catalog"
	"github.com/tidemark-go/tidemark/internal/store/dataset"
	"github.com/tidemark-go/tidemark/tenant"
)

// sizes implements inside.Sizes.
func (s *Store) sizes(ctx context.Context, name string, id tenant.ID) (inside.Stored, error) {
	entries, err := catalog.All(ctx, s.core.Whole)
	if err != nil {
		return inside.Stored{}, fmt.Errorf("tsdb: read the catalogue: %w", s.core.Explain(err))
	}
	var found *dataset.Dataset
	var out inside.Stored
	for _, e := range entries {
		d, err := dataset.FromCatalog(e)
		switch {
		case e.Name == name && err != nil:
			return inside.Stored{}, err
		case e.Name == name:
			found = d
		case err == nil: // the others only count, and need not be readable
			out.Others = append(out.Others, shaped{d})
		}
	}
	if found == nil {
		return inside.Stored{}, invalid.New(ErrInvalid, "dataset", invalid.Quote(name), "one that the catalogue has")
	}
	schema := &Schema[int]{d: *found, plain: true}
	for range found.Tags {
		schema.decoders = append(schema.decoders, func(payload []byte) (int, error) { return len(payload), nil })
	}
	r := schema.For(s, id)
	r.rows.Unlimited = true
	out.Dataset, out.Repository = shaped{found}, r
	return out, nil
}
