package skipscan

import (
	"context"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/store/dataset"
	"github.com/tidemark-go/tidemark/internal/store/points"
	"github.com/tidemark-go/tidemark/internal/store/rowkey"
)

// A scan that meets long histories remembers their entities in the outline of the dataset. The next scan asks for many
// of them in one request, without the rows behind their newest known points. The rows between two entities are part of
// the request, so it shows entities that are new. It ends early behind an entity with many new points, and the next one
// asks for fewer. It ends before an entity whose newest point is gone, and the scan goes on there as if it knew
// nothing.
const (
	mostKnown  = 250 // entities of a request, so that it ends well within the timeout of reads
	crowd      = 8   // more rows of an entity cost about as much as another request
	mostMisses = 8   // entities of a scan whose newest point is gone, until it asks for no more known ones
	manyNew    = 64  // unknown entities in such a request; if it has this many, their histories are short
)

// over returns the scan of a range, with nothing read.
func (s scan) over(rng rowkey.Range) scan {
	s.rest, s.begun, s.met, s.metBytes = rng, rng.Start, nil, 0
	return s
}

// remember brings the outline up to date with what the scan has read.
func (s *scan) remember() {
	if s.outline != nil && s.rest.Start > s.begun {
		s.outline.Replace(rowkey.Range{Start: s.begun, Limit: s.rest.Start}, s.met)
	}
	s.met = nil
}

// meet notes entities with long histories, as many as an outline can hold.
func (s *scan) meet(met ...rowkey.Known) {
	for _, e := range met {
		if s.metBytes += len(e.Prefix); s.metBytes > points.OutlineBytes || len(s.met) == points.OutlineEntities {
			return
		}
		s.met = append(s.met, e)
	}
}

// known returns the entities that the next request is for, and whether there are more; none if it is not for known
// ones.
func (s *scan) known() ([]rowkey.Known, bool) {
	if s.outline == nil || s.misses == mostMisses || s.alone {
		s.alone = false
		return nil, false
	}
	n := s.many
	if s.few > 0 {
		n = min(n, s.few)
	}
	return s.outline.First(s.rest, n)
}

// nextKnown reads the newest points of known entities, and the entities between them. If there are more known ones, the
// rest of the scan begins behind the last of these; else the request reads to the end.
func (s *scan) nextKnown(ctx context.Context, known []rowkey.Known, more bool) ([]dataset.Hit, error) {
	ranges := s.rest.Through(known)
	behind := ranges[len(known)]
	if more {
		ranges = ranges[:len(known)]
	}
	limit := crowd * len(known)
	pg, err := request(ctx, s, func(ctx context.Context) (page, error) { return s.readKnown(ctx, known, ranges, limit) })
	switch {
	case err != nil && ctx.Err() == nil && points.Temporary(err): // one of its ranges may be the cause
		s.outline.Replace(s.rest, nil)
		s.outline = nil
		return s.next(ctx)
	case err != nil:
		return nil, err
	}
	s.pager.earn(pg.rows, pg.entities)
	hits := pg.hits
	switch {
	case pg.missed:
		s.misses, s.alone = s.misses+1, true
		s.rest.Start = known[pg.at].Prefix
		if n := len(pg.met); n > 0 && pg.met[n-1].Prefix == s.rest.Start {
			pg.met = pg.met[:n-1] // the next page shows it
		}
	case pg.rows == limit || pg.cut:
		s.many = max(2, 2*pg.entities)
		hits, err = s.end(ctx, &pg)
	case more:
		s.many = min(2*s.many, mostKnown)
		s.rest = behind
	default:
		s.rest.Start = s.rest.Limit
	}
	s.keep(pg.met, known)
	return hits, err
}

// keep remembers the entities of a request for known ones. If many are new, their histories are short, and they are
// left out.
func (s *scan) keep(met, known []rowkey.Known) {
	if len(met) < len(known)+manyNew {
		s.meet(met...)
		return
	}
	for _, e := range met {
		for len(known) > 0 && known[0].Prefix < e.Prefix {
			known = known[1:]
		}
		if len(known) > 0 && known[0].Prefix == e.Prefix {
			s.meet(e)
		}
	}
}

// readKnown reads ranges that each end with the newest known point of an entity, but for one behind the last entity.
func (s *scan) readKnown(ctx context.Context, known []rowkey.Known, ranges []rowkey.Range, limit int) (page, error) {
	pg := page{expected: known[0].Prefix, met: make([]rowkey.Known, 0, len(known)), hits: make([]dataset.Hit, 0, len(known))}
	foreign := false
	set := make(bigtable.RowRangeList, len(ranges))
	for i, rng := range ranges {
		set[i] = bigtable.NewRange(rng.Start, rng.Limit)
	}
	// pass passes to the next range, unless the current one lacks the newest point of its entity.
	pass := func() bool {
		if pg.missed = pg.at < len(known) && !(pg.prefix == pg.expected && (pg.found > 0 || pg.old)); pg.missed {
			return false
		}
		if pg.at++; pg.at < len(known) {
			pg.expected = known[pg.at].Prefix
		}
		return true
	}
	read := bt.Scan{Rows: set, Filter: s.strip(s.horizon.EveryPayload()), Limit: int64(limit)}
	err := s.rows.Read(ctx, read, func(row *bt.Row) bool {
		at := pg.at
		for at < len(ranges) && row.Key() >= ranges[at].Limit {
			at++
		}
		if foreign = at == len(ranges) || row.Key() < ranges[at].Start; foreign {
			return false
		}
		for pg.at < at {
			if !pass() {
				return false
			}
		}
		more := s.row(&pg, row)
		pg.cut = pg.cut || pg.run > crowd
		return more && !pg.cut
	})
	if foreign {
		return pg, points.ForeignRow(s.d)
	}
	if err == nil && pg.rows < limit && !pg.cut {
		for pg.at < len(known) && pass() {
		}
	}
	return pg, s.table.Explain(err)
}
