package tenants

import (
	"context"
	"fmt"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/tsdb"
)

// kindOf identifies a kind of row.
type kindOf struct{ dataset, kind string }

// sampled are the rows of one kind in a page. One row in sampleShare is read with its values.
type sampled struct {
	rows int64
	keys []string
}

const (
	sampleShare = 100
	mostSampled = 128 // rows in one request; their keys must fit into it
)

// sample lists the rows of a page that are read with their values.
type sample struct {
	kinds map[kindOf]*sampled
	keys  int
}

// add adds a row of a kind. It selects the first row, and then one in a hundred.
func (s *sample) add(of kindOf, key string) {
	if s.kinds == nil {
		s.kinds = map[kindOf]*sampled{}
	}
	k := s.kinds[of]
	if k == nil {
		k = &sampled{}
		s.kinds[of] = k
	}
	if k.rows%sampleShare == 0 && s.keys < mostSampled {
		k.keys = append(k.keys, key)
		s.keys++
	}
	k.rows++
}

// estimate adds the bytes of a page, computed from its sample.
func (c *census) estimate(ctx context.Context, s sample) error {
	if s.keys == 0 {
		return nil
	}
	var list bigtable.RowList
	asked := map[string]*int64{}
	read := map[kindOf]*int64{}
	for of, k := range s.kinds {
		read[of] = new(int64)
		for _, key := range k.keys {
			list = append(list, key)
			asked[key] = read[of]
		}
	}
	for row, err := range c.Whole.Rows(ctx, bt.Scan{Rows: list, Long: true}) {
		if err != nil {
			return c.Explain(err)
		}
		n, ok := asked[row.Key()]
		if !ok {
			return fmt.Errorf("%w: %s", tsdb.ErrForeignRow, c.Name)
		}
		*n += rowBytes(row)
	}
	for of, k := range s.kinds {
		if len(k.keys) > 0 {
			c.kind(of.dataset, of.kind, false).Bytes += *read[of] * k.rows / int64(len(k.keys))
		}
	}
	return nil
}
