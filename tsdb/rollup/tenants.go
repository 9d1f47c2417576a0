package rollup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/store/rowkey"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
)

const (
	// aside is how many rows of other programs one request skips.
	aside = 1000
	// mostRanges bounds the ranges in one request. With the longest names they take half of the service's limit.
	mostRanges = 1000
)

// list returns the tenants to work on, sorted, each once. The worker remembers the tenants that it found in the
// table, and searches only between them. It forgets erased ones. With an error, list returns the known tenants.
func (w *Worker) list(ctx context.Context) (ids []tenant.ID, err error) {
	if w.opts.Tenants != nil {
		named := w.opts.Tenants(ctx)
		if named == nil {
			return nil, nil
		}
		for id, err := range named {
			if err != nil {
				return sorted(ids), err
			}
			ids = append(ids, id)
		}
		return sorted(ids), nil
	}
	w.mu.Lock()
	ids = slices.Clone(w.known)
	w.mu.Unlock()
	ids = slices.DeleteFunc(ids, func(id tenant.ID) bool {
		return errors.Is(w.in.Admit(tenant.NewContext(ctx, id), id), tsdb.ErrErased)
	})
	var gaps []rowkey.Range
	gap := rowkey.TenantsAfter(tenant.ID{})
	for _, id := range ids {
		own, err := rowkey.TenantRange(id)
		if err != nil {
			return ids, err
		}
		gaps = append(gaps, gap.Before(own.Start))
		gap = rowkey.TenantsAfter(id)
	}
	var failed error
	for id, err := range w.find(ctx, append(gaps, gap)) {
		if err != nil {
			failed = err
			break
		}
		ids = append(ids, id)
	}
	ids = sorted(ids)
	w.mu.Lock()
	w.known = slices.Clone(ids)
	w.mu.Unlock()
	return ids, failed
}

func sorted(ids []tenant.ID) []tenant.ID {
	slices.SortFunc(ids, func(a, b tenant.ID) int { return cmp.Compare(a.String(), b.String()) })
	return slices.Compact(ids)
}

// marked returns the tenants that may have marks, starting at a random one. Tenants that had marks in the last pass
// are returned without a check, because most have marks again. For the others it asks the table.
func (w *Worker) marked(ctx context.Context, ids []tenant.ID) iter.Seq2[tenant.ID, error] {
	return func(yield func(tenant.ID, error) bool) {
		if len(ids) == 0 {
			return
		}
		w.mu.Lock()
		busy := w.busy
		w.mu.Unlock()
		var datasets []string
		for _, j := range w.jobs {
			if len(j.derived()) > 0 {
				datasets = append(datasets, j.Name())
			}
		}
		slices.Sort(datasets)
		at := rand.IntN(len(ids))
		for _, part := range [][]tenant.ID{ids[at:], ids[:at]} {
			var ranges []rowkey.Range
			for _, id := range part {
				if busy[id] {
					if !yield(id, nil) {
						return
					}
					continue
				}
				for _, dataset := range datasets {
					r, err := rowkey.Marks(id, dataset)
					if err != nil {
						yield(id, err)
						return
					}
					ranges = append(ranges, r)
				}
			}
			for id, err := range w.find(ctx, ranges) {
				if !yield(id, err) || err != nil {
					return
				}
			}
		}
	}
}

// find returns the tenants that have rows in ranges, which are sorted. It sends one request for mostRanges ranges,
// and one for each tenant found. It reads only keys, and several tenants at once, which no tenant's own view of the
// table allows. It uses the app profile of conditional writes, because workers replace buckets through that profile.
func (w *Worker) find(ctx context.Context, ranges []rowkey.Range) iter.Seq2[tenant.ID, error] {
	return func(yield func(tenant.ID, error) bool) {
		for limit := int64(1); len(ranges) > 0; {
			asked := ranges[:min(mostRanges, len(ranges))]
			rows := make(bigtable.RowRangeList, len(asked))
			for i, r := range asked {
				rows[i] = bigtable.NewRange(r.Start, r.Limit)
			}
			last, id, foreign := "", tenant.ID{}, false
			err := w.in.Whole.SingleCluster().Read(ctx, bt.Scan{Rows: rows, Filter: bt.KeysOnly(), Limit: limit}, func(row *bt.Row) bool {
				last = row.Key()
				if foreign = !slices.ContainsFunc(asked, func(r rowkey.Range) bool { return last >= r.Start && last < r.Limit }); foreign {
					return false
				}
				of, ok := rowkey.TenantOf(last)
				if ok {
					id = of
				}
				return !ok
			})
			switch {
			case foreign:
				err = fmt.Errorf("%w: tenants", tsdb.ErrForeignRow)
			case err != nil:
				err = w.in.Explain(err)
			case last == "":
				ranges, limit = ranges[len(asked):], 1
				continue
			case id.IsZero():
				ranges, limit = from(ranges, last+"\x00"), aside
				continue
			}
			if !yield(id, err) || err != nil {
				return
			}
			ranges, limit = from(ranges, rowkey.TenantsAfter(id).Start), 1
		}
	}
}

// from returns ranges without the keys before key.
func from(ranges []rowkey.Range, key string) []rowkey.Range {
	n := 0
	for n < len(ranges) && ranges[n].Limit <= key {
		n++
	}
	ranges = ranges[n:]
	if len(ranges) > 0 && ranges[0].Start < key {
		ranges[0].Start = key
	}
	return ranges
}
