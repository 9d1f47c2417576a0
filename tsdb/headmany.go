package tsdb

import (
	"context"
	"sync"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/store/dataset"
)

const (
	maxRowSet = 500_000 // bytes of the row keys of one request, below the 512 KB that the service takes
	keyBytes  = 8       // that a row key takes in a request beside itself
	headPage  = 1000    // heads of one request of a scan
)

// newestOfHeads is newest by heads: one request for all entities whose row keys fit into one.
func (r *rows) newestOfHeads(ctx context.Context, paths []string, n int, o readOptions, visit func(i int, hits []dataset.Hit, err error)) {
	keys := make([]string, len(paths))
	var ends []int // of the parts
	size := 0
	for i, path := range paths {
		keys[i] = r.headKey(path)
		if size += len(keys[i]) + keyBytes; size > maxRowSet && i > 0 {
			ends = append(ends, i)
			size = len(keys[i]) + keyBytes
		}
	}
	ends = append(ends, len(paths))
	if o.hedge.on() {
		r.hedges.earn(len(ends), o.hedge.MaxRatio)
	}
	var mu sync.Mutex
	var unsure []int // whose heads may not have shown all
	whole := int64(0)
	sure := r.d.HeadsShow(n)
	if !sure {
		whole = r.d.OldestUnexpired(r.Clock())
	}
	atOnce(o.width, len(ends), func(part int) {
		from := 0
		if part > 0 {
			from = ends[part-1]
		}
		r.readHeads(ctx, keys[from:ends[part]], paths[from:ends[part]], n, o, func(i int, hits []dataset.Hit, err error) {
			i += from
			oldest := int64(0)
			if len(hits) > 0 {
				oldest = hits[len(hits)-1].Units // heads are in milliseconds
			}
			if sure || err != nil || dataset.HeadSure(len(hits), n, oldest, whole) {
				visit(i, hits, err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			unsure = append(unsure, i)
		})
	})
	if len(unsure) == 0 {
		return
	}
	if o.hedge.on() {
		r.hedges.earn(len(unsure), o.hedge.MaxRatio)
	}
	atOnce(o.width, len(unsure), func(k int) {
		hits, err := r.newestOfOne(ctx, paths[unsure[k]], n, o)
		visit(unsure[k], hits, err)
	})
}

// readHeads reads heads in one request, and visits the points in each. What had come before it failed is visited too.
func (r *rows) readHeads(ctx context.Context, keys, paths []string, n int, o readOptions, visit func(i int, hits []dataset.Hit, err error)) {
	if len(keys) == 0 {
		return
	}
	n = min(n, r.d.Head.Points)
	h := r.visibility()
	index := make(map[string]int, len(keys))
	for i, key := range keys {
		index[key] = i
	}
	got, err := once(ctx, r.table, o.hedge, func(ctx context.Context) ([]bigtable.Row, error) {
		found, foreign := make([]bigtable.Row, len(keys)), false
		err := r.bt.Read(ctx, bt.Scan{Rows: bigtable.RowList(keys), Filter: h.HeadFilter(n)}, func(row bigtable.Row) bool {
			i, ok := index[row.Key()]
			if foreign = !ok; ok {
				found[i] = row
			}
			return ok
		})
		if foreign {
			return nil, foreignRow(r.d)
		}
		return found, r.Explain(err)
	})
	var versions []dataset.Version
	var hits []dataset.Hit
	for i := range keys {
		hits = hits[:0]
		switch {
		case i < len(got) && got[i] != nil:
			versions = h.Versions(versions, got[i], n)
			for j := range versions {
				hits = append(hits, versions[j].Hit(paths[i]))
			}
			visit(i, hits, nil)
		default:
			visit(i, nil, err)
		}
	}
}

// nextHeads is next over heads: a row an entity, and nothing to skip.
func (s *skipScan) nextHeads(ctx context.Context) ([]dataset.Hit, error) {
	limit := headPage
	if s.few > 0 {
		limit = min(limit, s.few)
	}
	pg, err := request(ctx, s, func(ctx context.Context) (page, error) {
		pg := page{rng: s.rest}
		read := bt.Scan{Rows: bigtable.NewRange(pg.rng.Start, pg.rng.Limit), Filter: s.strip(s.horizon.HeadFilter(1)), Limit: int64(limit)}
		err := s.rows.Read(ctx, read, func(row bigtable.Row) bool { return s.head(&pg, row) })
		return pg, s.checked(err, pg.foreign)
	})
	if err != nil {
		return nil, err
	}
	if pg.rows < limit && !pg.cut {
		s.rest.Start = s.rest.Limit
	} else {
		s.rest = s.rest.After(pg.last)
	}
	return pg.hits, nil
}

// head takes in the head of an entity, and reports whether the page goes on.
func (s *skipScan) head(pg *page, row bigtable.Row) bool {
	pg.last = row.Key()
	if pg.foreign = pg.last < pg.rng.Start || pg.last >= pg.rng.Limit; pg.foreign {
		return false
	}
	pg.rows++
	path, ok := s.space.SplitEntity(pg.last)
	if !ok {
		return true
	}
	for _, v := range s.horizon.Versions(nil, row, 1) {
		pg.bytes += len(v.Item.Value)
		pg.hits = append(pg.hits, v.Hit(path))
	}
	pg.cut = pg.bytes >= pageBytes
	return !pg.cut
}
