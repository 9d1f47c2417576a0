package dataset

import (
	"fmt"

	"github.com/tidemark-go/tidemark/internal/store/rowkey"
)

// CheckKeys asks the schema's CheckKeys about each part of the path of an entity, which has passed CheckPath.
func (d *Dataset) CheckKeys(path string) error {
	if d.KeyCheck == nil {
		return nil
	}
	for i, part := range rowkey.Each(path) {
		if err := d.KeyCheck(d.Fields[i], part); err != nil {
			return fmt.Errorf("%w: %w", ErrInvalid, err)
		}
	}
	return nil
}
