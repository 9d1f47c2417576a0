package skipscan

import (
	"context"
	"strings"

	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/store/dataset"
	"github.com/tidemark-go/tidemark/internal/store/points"
)

// nextHeads is next for heads. They have one row per entity, so only entities that are not wanted are skipped.
func (s *scan) nextHeads(ctx context.Context) ([]dataset.Hit, error) {
	limit := points.HeadPage
	if s.parts > 0 {
		limit = s.pager.next()
	}
	if s.few > 0 {
		limit = min(limit, s.few)
	}
	pg, err := request(ctx, s, func(ctx context.Context) (page, error) {
		var pg page
		read := bt.Scan{Filter: s.strip(s.horizon.HeadFilter(s.each)), Limit: int64(limit)}
		err := s.inRange(ctx, s.rest, read, func(row *bt.Row) bool { return s.head(&pg, row) })
		return pg, err
	})
	if err != nil {
		return nil, err
	}
	s.pager.note(pg.rows, pg.needed, pg.entities)
	switch {
	case pg.rows < limit && !pg.cut:
		s.rest.Start = s.rest.Limit
	case pg.group != "":
		s.rest = s.rest.Behind(pg.group)
	default:
		s.rest = s.rest.After(pg.last)
	}
	return pg.hits, nil
}

// head reads a head, and reports whether the page continues.
func (s *scan) head(pg *page, row *bt.Row) bool {
	pg.last = row.Key()
	pg.rows++
	if pg.group != "" && strings.HasPrefix(pg.last, pg.group) {
		return true
	}
	pg.entities++
	pg.needed = pg.rows
	path, ok := s.space.SplitEntity(pg.last)
	if !ok {
		return true
	}
	for _, v := range s.horizon.Versions(nil, row, s.each) {
		pg.bytes += len(v.Item.Value)
		pg.hits = append(pg.hits, v.Hit(path))
		if s.parts > 0 {
			pg.group = s.groupOf(path, s.space.EntityPrefix(pg.last, path))
		}
	}
	pg.cut = pg.bytes >= pageBytes
	return !pg.cut
}
