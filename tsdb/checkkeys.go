package tsdb

import (
	"fmt"

	"github.com/tidemark-go/tidemark/internal/store/rowkey"
)

// checkKeys asks the schema's CheckKeys about each part of the path of an entity, which has passed CheckPath.
func (d *dataset) checkKeys(path string) error {
	if d.keyCheck == nil {
		return nil
	}
	for i, part := range rowkey.Each(path) {
		if err := d.keyCheck(d.fields[i], part); err != nil {
			return fmt.Errorf("%w: %w", ErrInvalid, err)
		}
	}
	return nil
}
