package tsdb

import (
	"context"
	"sync"
	"sync/atomic"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/store/dataset"
)

const (
	maxRowSet = 500_000 // bytes of the row keys of one request, below the 512 KB that the service takes
	keyBytes  = 8       // that a row key takes in a request beside itself
	headPage  = 1000    // heads of one request of a scan
)

// newestOfHeads is newestOf by heads: one request for all entities whose row keys fit into one.
func (r *Repository[T]) newestOfHeads(ctx context.Context, entities []Entity, n int, o readOptions) []History[T] {
	out := make([]History[T], len(entities))
	keys := make([]string, len(entities))
	var cuts []int // where the parts end
	size := 0
	for i, e := range entities {
		out[i].Entity = e
		keys[i] = r.headKey(e.path)
		if size += len(keys[i]) + keyBytes; size > maxRowSet && i > 0 {
			cuts = append(cuts, i)
			size = len(keys[i]) + keyBytes
		}
	}
	cuts = append(cuts, len(entities))
	if o.hedge.on() {
		r.store.core.hedges.earn(len(cuts), o.hedge.MaxRatio)
	}
	var next atomic.Int64
	work := func() {
		for {
			i := int(next.Add(1)) - 1
			if i >= len(cuts) {
				return
			}
			from := 0
			if i > 0 {
				from = cuts[i-1]
			}
			r.readHeads(ctx, keys[from:cuts[i]], out[from:cuts[i]], n, o)
		}
	}
	var workers sync.WaitGroup
	for range min(o.width, len(cuts)) - 1 {
		workers.Go(work)
	}
	work()
	workers.Wait()
	if !r.schema.d.HeadsShow(n) {
		r.readUnsure(ctx, out, n, o)
	}
	return out
}

// readUnsure reads from its points what a head may not have shown.
func (r *Repository[T]) readUnsure(ctx context.Context, out []History[T], n int, o readOptions) {
	whole := r.schema.d.OldestUnexpired(r.store.core.Clock())
	var todo []int
	for i := range out {
		_, undecoded := out[i].Err.(PointErrors)
		if out[i].Err != nil && !undecoded {
			continue
		}
		oldest, shown := int64(0), len(out[i].Points)
		if shown > 0 {
			oldest = out[i].Points[shown-1].Time.UnixMilli()
		}
		if !dataset.HeadSure(shown, n, oldest, whole) {
			todo = append(todo, i)
		}
	}
	if o.hedge.on() {
		r.store.core.hedges.earn(len(todo), o.hedge.MaxRatio)
	}
	atOnce(o.width, len(todo), func(k int) { out[todo[k]] = r.newestOfOne(ctx, out[todo[k]].Entity, n, o) })
}

// readHeads fills in histories from heads in one request. What had come before it failed is kept.
func (r *Repository[T]) readHeads(ctx context.Context, keys []string, out []History[T], n int, o readOptions) {
	if len(keys) == 0 {
		return
	}
	n = min(n, r.schema.d.Head.Points)
	h := r.horizon()
	index := make(map[string]int, len(keys))
	for i, key := range keys {
		index[key] = i
	}
	got, err := once(ctx, r.store, o.hedge, func(ctx context.Context) ([]bigtable.Row, error) {
		rows, foreign := make([]bigtable.Row, len(keys)), false
		err := r.rows.Read(ctx, bt.Scan{Rows: bigtable.RowList(keys), Filter: h.HeadFilter(n)}, func(row bigtable.Row) bool {
			i, ok := index[row.Key()]
			if foreign = !ok; ok {
				rows[i] = row
			}
			return ok
		})
		if foreign {
			return nil, foreignRow(&r.schema.d)
		}
		return rows, r.store.core.Explain(err)
	})
	var found []dataset.Version
	for i := range out {
		switch {
		case i < len(got) && got[i] != nil:
			found = h.Versions(found, got[i], n)
			r.fromVersions(&out[i], found)
		case err != nil:
			out[i].Err = err
		}
	}
}

// fromVersions fills in a history.
func (r *Repository[T]) fromVersions(h *History[T], versions []dataset.Version) {
	var bad PointErrors
	if len(versions) > 0 {
		h.Points = make([]Point[T], 0, len(versions))
	}
	for i := range versions {
		p, err := r.decode(versions[i].Hit(h.Entity.path))
		h.Points = append(h.Points, p)
		if err != nil {
			bad = append(bad, err)
		}
	}
	if bad != nil {
		h.Err = bad
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
