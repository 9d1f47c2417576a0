package tsdb

import (
	"context"

	"github.com/tidemark-go/tidemark/internal/store/catalog"
	"github.com/tidemark-go/tidemark/internal/store/dataset"
)

// ensureDescribed is Ensure for datasets that only their entries describe.
func (s *Store) ensureDescribed(ctx context.Context, entries []catalog.Dataset) error {
	datasets := make([]Dataset, len(entries))
	for i, e := range entries {
		d, err := dataset.FromCatalog(e)
		if err != nil {
			return err
		}
		datasets[i] = shaped{d}
	}
	return s.Ensure(ctx, datasets...)
}

// shaped is a dataset without a schema.
type shaped struct{ d *dataset.Dataset }

func (s shaped) Name() string { return s.d.Name }

func (s shaped) shape() *dataset.Dataset { return s.d }

func (s shaped) Entity(values ...any) (Entity, error) { return entityOf(s.d, values) }

func (s shaped) Prefix(values ...any) (Prefix, error) { return prefixOf(s.d, values) }

func (s shaped) Scan(e Entity, into ...any) error { return scanEntity(s.d, e, into) }
