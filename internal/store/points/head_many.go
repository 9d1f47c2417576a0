package points

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
	HeadPage  = 1000    // heads that one request of a skip scan asks for
)

// newestOfHeads is Newest from heads: one request for all entities whose row keys fit into one. Entities whose head may lack
// points are read again, from their points.
func (r *Rows) newestOfHeads(ctx context.Context, paths []string, n int, o Options, visit func(i int, hits []dataset.Hit, err error)) {
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
	if o.Hedge.On() {
		r.Hedges.Earn(len(ends), o.Hedge.MaxRatio)
	}
	var mu sync.Mutex
	var unsure []int // whose heads may not have shown all
	sure := r.D.HeadsShow(n)
	AtOnce(o.Width, len(ends), func(part int) {
		whole := int64(-1) // not known before the heads are read: what expires meanwhile counts
		from := 0
		if part > 0 {
			from = ends[part-1]
		}
		r.readHeads(ctx, keys[from:ends[part]], paths[from:ends[part]], n, o, func(i int, hits []dataset.Hit, err error) {
			i += from
			if !sure && whole < 0 {
				whole = r.D.OldestUnexpired(r.Clock())
			}
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
	if o.Hedge.On() {
		r.Hedges.Earn(len(unsure), o.Hedge.MaxRatio)
	}
	AtOnce(o.Width, len(unsure), func(k int) {
		hits, err := r.newestOfOne(ctx, paths[unsure[k]], n, o)
		visit(unsure[k], hits, err)
	})
}

// readHeads reads heads in one request, and visits the points of each. If the request fails, heads that had come before are
// still visited with their points, and the others with the error.
func (r *Rows) readHeads(ctx context.Context, keys, paths []string, n int, o Options, visit func(i int, hits []dataset.Hit, err error)) {
	if len(keys) == 0 {
		return
	}
	n = min(n, r.D.Head.Points)
	h := r.Visibility()
	index := make(map[string]int, len(keys))
	for i, key := range keys {
		index[key] = i
	}
	got, err := Once(ctx, r.Table, o.Hedge, func(ctx context.Context) ([]bigtable.Row, error) {
		found, foreign := make([]bigtable.Row, len(keys)), false
		err := r.View.Read(ctx, bt.Scan{Rows: bigtable.RowList(keys), Filter: h.HeadFilter(n)}, func(row bigtable.Row) bool {
			i, ok := index[row.Key()]
			if foreign = !ok; ok {
				found[i] = row
			}
			return ok
		})
		if foreign {
			return nil, ForeignRow(r.D)
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
