package forecast

import (
	"context"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/store/rowkey"
)

// probe reads some rows of a piece that is too large to read to its end: it chooses a random entity and a random
// time. Pieces and entities begin with their newest rows, so reading only their beginnings would hide the old data.
func (s *sample) probe(ctx context.Context, c *piece) error {
	place, when := s.random.Float64(), s.random.Float64()
	if c.last == "" { // a range's limit may be far behind its last row
		var err error
		if c.last, err = s.one(ctx, c.all, true); err != nil {
			return err
		}
	}
	from := rowkey.Between(c.all.Start, c.last, place)
	key, err := s.one(ctx, rowkey.Range{Start: from, Limit: c.all.Limit}, false)
	if err != nil {
		return err
	}
	rows := max(leastRows/turns, s.opts.Rows/spreadOver/turns)
	into := func(string) *piece { return c }
	seen := len(c.seen)
	entity, _, ok := s.entityOf(key)
	if !ok { // a head, or a row of another program
		_, err = s.block(ctx, rowkey.Range{Start: max(key, from), Limit: c.all.Limit}, rows, into)
		c.stand(seen, 1)
		return err
	}
	entity = entity.Within(c.all)
	newest := key
	if from > entity.Start {
		if newest, err = s.one(ctx, entity, false); err != nil {
			return err
		}
	}
	oldest, err := s.one(ctx, entity, true)
	if err != nil {
		return err
	}
	at := rowkey.Between(newest, oldest, when)
	older, err := s.block(ctx, rowkey.Range{Start: at, Limit: entity.Limit}, rows, into)
	newer := block{}
	if err == nil && older.ended && at > newest {
		newer, err = s.block(ctx, rowkey.Range{Start: entity.Start, Limit: at}, rows-older.rows, into)
	}
	stands := 1.0
	if read := s.span(older) + s.span(newer); read > 0 && (!older.ended || !newer.ended && at > newest) {
		stands = max(1, s.span(block{first: newest, last: oldest})/read)
	}
	c.stand(seen, stands)
	return err
}

// span returns the time between the first and the last row of one entity.
func (s *sample) span(b block) float64 {
	_, from, _ := s.entityOf(b.first)
	_, to, _ := s.entityOf(b.last)
	return to - from
}

// entityOf is rowkey.EntityOf with the catalogue's entry of the key's dataset. Only points have an ID after their
// time.
func (s *sample) entityOf(key string) (all rowkey.Range, reverse float64, ok bool) {
	group, _, _ := rowkey.GroupOf(key)
	return rowkey.EntityOf(key, group.Kind == "" && s.identity[group.Dataset])
}

// one returns the first or the last key of a range, or empty if there is none.
func (s *sample) one(ctx context.Context, rng rowkey.Range, last bool) (key string, err error) {
	if s.spent() {
		return "", errSpent
	}
	if rng.Empty() {
		return "", nil
	}
	keys := bigtable.ChainFilters(bigtable.CellsPerRowLimitFilter(1), bigtable.StripValueFilter())
	err = s.rows(ctx, bt.Scan{Filter: keys, Limit: 1, Reverse: last}, rng, func(row *bt.Row) bool {
		key = row.Key()
		s.cost.Rows++
		s.cost.Bytes += int64(len(key))
		return true
	})
	return key, err
}

// stand marks the cells from an index on as a scattered sample, and sets how many cells each represents.
func (c *piece) stand(from int, each float64) {
	if c.stood == 0 {
		for i := range from {
			c.stood += float64(c.seen[i].bytes)
		}
	}
	for i := from; i < len(c.seen); i++ {
		c.seen[i].stands = float32(each)
		c.stood += float64(c.seen[i].bytes) * each
	}
}
