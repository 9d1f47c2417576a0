package points

import (
	"context"
	"slices"
	"sync"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/store/dataset"
)

const (
	maxRowSet = 500_000 // bytes of the row keys of one request; the service accepts 512 KB
	keyBytes  = 8       // overhead of a row key in a request
	HeadPage  = 1000    // heads per request of a skip scan
)

// newestOfHeads is Newest from heads: one request for as many entities as fit into it. Entities whose head may lack
// points are read again, from their points.
func (r *Rows) newestOfHeads(ctx context.Context, paths []string, n int, o Options, visit func(i int, hits []dataset.Hit, err error)) {
	keys := r.headKeys(paths)
	ends := requestEnds(keys)
	r.Hedges.Earn(o.Hedge, len(ends))
	var mu sync.Mutex
	var unsure []int // entities whose head may lack points
	sure := r.D.HeadsShow(n)
	bt.AtOnce(o.Width, len(ends), func(part int) {
		whole := int64(-1) // set after the heads are read, so that points that expire during the read count as expired
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
	r.Hedges.Earn(o.Hedge, len(unsure))
	bt.AtOnce(o.Width, len(unsure), func(k int) {
		hits, err := r.newestOfOne(ctx, paths[unsure[k]], n, o)
		visit(unsure[k], hits, err)
	})
}

// requestEnds returns the end of each request's part of row keys.
func requestEnds(keys []string) (ends []int) {
	size := 0
	for i, key := range keys {
		if size += len(key) + keyBytes; size > maxRowSet && i > 0 {
			ends = append(ends, i)
			size = len(key) + keyBytes
		}
	}
	return append(ends, len(keys))
}

// headKeys returns the row keys of heads, which share their memory.
func (r *Rows) headKeys(paths []string) []string {
	var all []byte
	ends := make([]int, len(paths))
	for i, path := range paths {
		if all = r.Heads.AppendEntity(all, path); i == 0 {
			all = slices.Grow(all, (len(all)+keyBytes)*(len(paths)-1))
		}
		ends[i] = len(all)
	}
	text, keys, from := string(all), make([]string, len(paths)), 0
	for i, end := range ends {
		keys[i], from = text[from:end], end
	}
	return keys
}

// foundHeads is the result of a request for heads.
type foundHeads struct {
	hits  []dataset.Hit
	heads []foundHead
}

// foundHead is the part of foundHeads.hits that belongs to one head.
type foundHead struct {
	arrived  bool
	from, to int
}

// readHeads reads heads in one request, and visits the points of each. If the request fails, it visits the heads that
// had arrived with their points, and the others with the error.
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
	got, err := Once(ctx, r.Table, o.Hedge, func(ctx context.Context) (foundHeads, error) {
		found, foreign := foundHeads{heads: make([]foundHead, len(keys))}, false
		var versions []dataset.Version
		err := r.View.Read(ctx, bt.Scan{Rows: bigtable.RowList(keys), Filter: h.HeadFilter(n)}, func(row *bt.Row) bool {
			i, ok := index[row.Key()]
			if foreign = !ok; foreign {
				return false
			}
			if found.hits == nil {
				found.hits = make([]dataset.Hit, 0, min(min(n, len(row.Cells()))*len(keys), 1024))
			}
			from := len(found.hits)
			versions = h.Versions(versions, row, n)
			for j := range versions {
				found.hits = append(found.hits, versions[j].Hit(paths[i]))
			}
			found.heads[i] = foundHead{arrived: true, from: from, to: len(found.hits)}
			return true
		})
		if foreign {
			return foundHeads{}, ForeignRow(r.D)
		}
		return found, r.Explain(err)
	})
	for i := range keys {
		if i < len(got.heads) && got.heads[i].arrived {
			visit(i, got.hits[got.heads[i].from:got.heads[i].to:got.heads[i].to], nil)
		} else {
			visit(i, nil, err)
		}
	}
}
