package tenants

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/tsdb"
)

// kindOf identifies a kind of row.
type kindOf struct{ dataset, kind string }

const (
	sampleShare = 100
	mostSampled = 128 // rows in one request; their keys must fit into it
)

// sample lists the rows of a page that are read with their values, with their kinds.
type sample struct {
	rows, picked map[kindOf]int64
	keys         map[string]kindOf
}

// add adds a row of a kind. It selects the first row, and then one in a hundred.
func (s *sample) add(of kindOf, key string) {
	if s.rows[of]%sampleShare == 0 {
		s.keys[key] = of
		s.picked[of]++
	}
	s.rows[of]++
}

// estimate adds the bytes of a page, computed from its sample.
func (c *census) estimate(ctx context.Context, s sample) error {
	read := map[kindOf]int64{}
	for list := range slices.Chunk(slices.Sorted(maps.Keys(s.keys)), mostSampled) {
		for row, err := range c.Whole.Rows(ctx, bt.Scan{Rows: bigtable.RowList(list), Long: true}) {
			if err != nil {
				return c.Explain(err)
			}
			of, ok := s.keys[row.Key()]
			if !ok {
				return fmt.Errorf("%w: %s", tsdb.ErrForeignRow, c.Name)
			}
			read[of] += rowBytes(row)
		}
	}
	for of, n := range s.picked {
		c.kind(of.dataset, of.kind, false).Bytes += read[of] * s.rows[of] / n
	}
	return nil
}
