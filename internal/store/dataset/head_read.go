package dataset

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/internal/readrows"
)

// HeadFilter passes the k newest visible versions of each column of a head row. They include the k newest points,
// whichever columns hold them. Between narrows it only at the old end: versions behind the newest k are not shown,
// whether or not they were collected.
func (h Visibility) HeadFilter(k int) bigtable.Filter {
	return h.overHeads(func(c *Class, cutoff bigtable.Timestamp) bigtable.Filter {
		payload := bigtable.ColumnRangeFilter(c.Name, slot, afterSlot)
		from := max(cutoff, h.from)
		if from == 0 {
			return bigtable.ChainFilters(payload, bigtable.LatestNFilter(k))
		}
		return bigtable.ChainFilters(payload, bigtable.TimestampRangeFilterMicros(from, 0), bigtable.LatestNFilter(k))
	})
}

// VersionFilter passes the visible versions at one time in a head row.
func (h Visibility) VersionFilter(cell bigtable.Timestamp) bigtable.Filter {
	return h.overHeads(func(c *Class, cutoff bigtable.Timestamp) bigtable.Filter {
		if cell < cutoff {
			return bigtable.BlockAllFilter()
		}
		return bigtable.ChainFilters(bigtable.ColumnRangeFilter(c.Name, slot, afterSlot), bigtable.TimestampRangeFilterMicros(cell, After(cell)))
	})
}

// overHeads combines one filter for each class of heads.
func (h Visibility) overHeads(filter func(c *Class, cutoff bigtable.Timestamp) bigtable.Filter) bigtable.Filter {
	return AnyOf(len(h.D.HeadClasses), func(i int) bigtable.Filter { return filter(&h.D.HeadClasses[i], h.Cutoff(i)) })
}

// Version is one point in a head row.
type Version struct {
	Units int64
	Item  *readrows.Cell // the payload
	Tag   int
	Err   error // the schema does not read the payload's format
	Rank  int   // order of the payload's column among those of its time
}

// Versions returns the newest visible points in a head row, newest first, at most limit, in the memory of buf. If one
// time has several payloads, it returns the one that a read of the point's own row would.
func (h Visibility) Versions(buf []Version, row *readrows.Row, limit int) []Version {
	out := buf[:0]
	for i := range h.D.HeadClasses {
		family := h.D.HeadClasses[i].Name
		items := row.Family(family)
		out = slices.Grow(out, len(items))
		cutoff := h.Cutoff(i)
		for j := range items {
			if items[j].Timestamp < cutoff {
				continue
			}
			if v, ok := h.D.version(i, &items[j]); ok {
				out = append(out, v)
			}
		}
	}
	byTime := func(a, b Version) int { return cmp.Or(cmp.Compare(b.Units, a.Units), cmp.Compare(a.Rank, b.Rank)) }
	if !slices.IsSortedFunc(out, byTime) {
		slices.SortFunc(out, byTime)
	}
	out = slices.CompactFunc(out, func(a, b Version) bool { return a.Units == b.Units })
	return out[:min(limit, len(out))]
}

// version returns the point in one cell of a head row. class is the index of the cell's class.
func (d *Dataset) version(class int, item *readrows.Cell) (Version, bool) {
	v := Version{Units: unitsOf(item.Timestamp), Item: item}
	for tag := range d.Tags {
		if v.Rank = class*len(d.Tags) + tag; d.HeadColumns[v.Rank].Name == item.Column {
			v.Tag = tag
			return v, true
		}
	}
	tag, ok := strings.CutPrefix(item.Column, d.HeadClasses[class].Name+":"+slot)
	v.Rank, v.Err = math.MaxInt, d.unknownTag(tag)
	return v, ok
}

// HeadsHold reports whether the n newest points of named entities are read from their heads.
func (d *Dataset) HeadsHold(n int) bool { return d.Head.Only || n <= d.Head.Points }

// HeadsShow reports whether each head shows everything that HeadsHold says it holds. If it returns false, check each
// head with HeadSure.
func (d *Dataset) HeadsShow(n int) bool { return d.HeadsHold(n) && (d.Head.Only || d.Ordered()) }

// HeadSure reports whether n points shown by a head, the oldest of them at oldest, are the newest visible ones. A head
// lacks a point only if it held n newer ones, and then shows fewer than n only after one of those has expired. No point
// after whole has expired, in any class.
func HeadSure(shown, n int, oldest, whole int64) bool { return shown == n && oldest >= whole }

// Hit returns the version as an entity's point, not decoded yet.
func (v *Version) Hit(path string) Hit {
	return Hit{Path: path, Units: v.Units, Payload: v.Item.Value, Tag: v.Tag, Err: v.Err}
}

// ClearUnread deletes the versions of a head row, between two times in units, whose tags this program does not know.
func (m *HeadMutation) ClearUnread(d *Dataset, row *readrows.Row, oldest, newest int64) {
	for class := range d.HeadClasses {
		family := d.HeadClasses[class].Name
		items := row.Family(family)
		for i := range items {
			if v, ok := d.version(class, &items[i]); ok && v.Err != nil && v.Units >= oldest && v.Units <= newest {
				column := Column{Family: family, Qualifier: items[i].Column[len(family)+1:]}
				m.Clear([]Column{column}, items[i].Timestamp, After(items[i].Timestamp))
			}
		}
	}
}
