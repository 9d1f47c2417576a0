package tsdb

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strings"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/internal/ctxerr"
)

// headFilter passes the k newest visible versions of each column of a head row. The k newest points are among them,
// whichever columns they stand in.
func (h horizon) headFilter(k int) bigtable.Filter {
	return h.overHeads(func(c *class, cutoff bigtable.Timestamp) bigtable.Filter {
		payload := bigtable.ColumnRangeFilter(c.Name, slot, afterSlot)
		if cutoff == 0 {
			return bigtable.ChainFilters(payload, bigtable.LatestNFilter(k))
		}
		return bigtable.ChainFilters(payload, bigtable.TimestampRangeFilterMicros(cutoff, 0), bigtable.LatestNFilter(k))
	})
}

// versionFilter passes the visible versions of one time in a head row.
func (h horizon) versionFilter(cell bigtable.Timestamp) bigtable.Filter {
	return h.overHeads(func(c *class, cutoff bigtable.Timestamp) bigtable.Filter {
		if cell < cutoff {
			return bigtable.BlockAllFilter()
		}
		return bigtable.ChainFilters(bigtable.ColumnRangeFilter(c.Name, slot, afterSlot), bigtable.TimestampRangeFilterMicros(cell, after(cell)))
	})
}

// overHeads joins a filter for each class of heads.
func (h horizon) overHeads(filter func(c *class, cutoff bigtable.Timestamp) bigtable.Filter) bigtable.Filter {
	filters := make([]bigtable.Filter, len(h.d.headClasses))
	for i := range h.d.headClasses {
		filters[i] = filter(&h.d.headClasses[i], h.cutoff(i))
	}
	if len(filters) == 1 {
		return filters[0]
	}
	return bigtable.InterleaveFilters(filters...)
}

// version is one point in a head row.
type version struct {
	units int64
	item  *bigtable.ReadItem // the payload
	tag   int
	err   error // the payload is in no format that the schema reads
	rank  int   // of the payload's column among those of its time
}

// versions returns the newest visible points in a head row, newest first, at most limit, in the memory of buf. Of several
// payloads at one time that counts which would count in the point's own row.
func (h horizon) versions(buf []version, row bigtable.Row, limit int) []version {
	out := buf[:0]
	for i := range h.d.headClasses {
		family := h.d.headClasses[i].Name
		items := row[family]
		out = slices.Grow(out, len(items))
		cutoff := h.cutoff(i)
		for j := range items {
			if items[j].Timestamp < cutoff {
				continue
			}
			if v, ok := h.d.version(i, &items[j]); ok {
				out = append(out, v)
			}
		}
	}
	byTime := func(a, b version) int { return cmp.Or(cmp.Compare(b.units, a.units), cmp.Compare(a.rank, b.rank)) }
	if !slices.IsSortedFunc(out, byTime) {
		slices.SortFunc(out, byTime)
	}
	out = slices.CompactFunc(out, func(a, b version) bool { return a.units == b.units })
	return out[:min(limit, len(out))]
}

// version returns the point in one cell of a head row, in the family of the class at an index.
func (d *dataset) version(class int, item *bigtable.ReadItem) (version, bool) {
	v := version{units: unitsOf(item.Timestamp), item: item}
	for tag := range d.tags {
		if v.rank = class*len(d.tags) + tag; d.headColumns[v.rank].name == item.Column {
			v.tag = tag
			return v, true
		}
	}
	tag, ok := strings.CutPrefix(item.Column, d.headClasses[class].Name+":"+slot)
	v.rank, v.err = math.MaxInt, d.unknownTag(tag)
	return v, ok
}

// headsHold reports whether the n newest points of named entities are read from their heads.
func (d *dataset) headsHold(n int) bool { return d.head.Only || n <= d.head.Points }

// headsShow reports whether heads show all that headsHold says they hold. Where they may not, each is asked by headSure.
func (d *dataset) headsShow(n int) bool { return d.headsHold(n) && (d.head.Only || d.ordered()) }

// headSure reports whether n points that a head shows, the oldest of them at oldest, are the newest that are visible. A head
// lacks a point only where n newer ones were in it, and shows too few of those only once one has expired: which none has
// that lies after whole, in any class.
func headSure(shown, n int, oldest, whole int64) bool { return shown == n && oldest >= whole }

// scanHead is scan where heads are all there is. Elsewhere one entity is read from its points, which costs the same and is
// true even while a head is not.
func (r *Repository[T]) scanHead(ctx context.Context, s span, visit func(Point[T], *PointError) bool) error {
	h := r.horizon()
	k := r.schema.d.head.Points
	if s.limit > 0 && s.newest == r.schema.d.precision.Max() && !s.reverse {
		k = min(k, s.limit)
	}
	row, err := r.rows.Row(ctx, r.headKey(s.entity.path), h.headFilter(k))
	if err != nil {
		return r.store.explain(err)
	}
	versions := h.versions(nil, row, k)
	if s.reverse {
		slices.Reverse(versions)
	}
	visited := 0
	for i := range versions {
		v := &versions[i]
		if v.units < s.oldest || v.units > s.newest {
			continue
		}
		if s.limit > 0 && visited == s.limit {
			return nil
		}
		if err := ctxerr.Of(ctx); err != nil {
			return err
		}
		if s.room != nil && !s.room(len(v.item.Value)) {
			return nil
		}
		visited++
		if s.stored != nil {
			s.stored(v.units, v.item, v.rank, v.err)
			continue
		}
		if !visit(r.decode(v.hit(s.entity.path))) {
			return nil
		}
	}
	return nil
}

// hit returns the version as a point of an entity, not decoded yet.
func (v *version) hit(path string) hit {
	return hit{path: path, units: v.units, payload: v.item.Value, tag: v.tag, err: v.err}
}
