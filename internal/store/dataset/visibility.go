package dataset

import (
	"time"

	"cloud.google.com/go/bigtable"
)

// Visibility says what is visible at one moment: for each class, the oldest cell timestamp that is not expired.
type Visibility struct {
	D     *Dataset
	now   time.Time
	first bigtable.Timestamp // the cutoff of the class that is written

	// The filters pass cells from a timestamp on and before another; 0 means no bound.
	from, to bigtable.Timestamp
}

func (d *Dataset) Visibility(now time.Time) Visibility {
	return Visibility{D: d, now: now, first: d.Classes[0].cutoff(now)}
}

// Between narrows the filters to cells of points between two times in units, both included. Tiered storage keeps cells
// by their timestamps, and a read stays on the fast tier only if its filter has a range of timestamps. Use it only for
// reads of these times by key: behind a filter, the service looks through all rows of a wider range.
func (h Visibility) Between(oldest, newest int64) Visibility {
	h.from = bigtable.Timestamp(h.D.Precision.CellMicros(oldest))
	if newest < h.D.Precision.Max() {
		h.to = After(bigtable.Timestamp(h.D.Precision.CellMicros(newest)))
	}
	return h
}

// Cutoff returns the oldest visible cell timestamp of the class at an index.
func (h Visibility) Cutoff(class int) bigtable.Timestamp {
	if class == 0 {
		return h.first
	}
	return h.D.Classes[class].cutoff(h.now)
}

// Oldest returns the oldest time of a visible point in any class, in units of the dataset's precision.
func (h Visibility) Oldest() int64 {
	cutoff := h.first
	for i := range h.D.Classes {
		cutoff = min(cutoff, h.Cutoff(i))
	}
	units, ok := h.D.Precision.AtOrAfter(cutoff.Time())
	if !ok {
		return h.D.Precision.Max()
	}
	return units
}

// Filter passes the visible payload cells of points in every class of the dataset.
func (h Visibility) Filter() bigtable.Filter {
	return AnyOf(len(h.D.Classes), h.ClassFilter)
}

// AnyOf passes the cells that pass one of n filters.
func AnyOf(n int, filter func(i int) bigtable.Filter) bigtable.Filter {
	if n == 1 {
		return filter(0)
	}
	filters := make([]bigtable.Filter, n)
	for i := range filters {
		filters[i] = filter(i)
	}
	return bigtable.InterleaveFilters(filters...)
}

func (h Visibility) ClassFilter(class int) bigtable.Filter {
	c := &h.D.Classes[class]
	payload := bigtable.ColumnRangeFilter(c.Name, slot, afterSlot)
	from := max(h.from, h.Cutoff(class))
	switch {
	case from == 0 && h.to == 0:
		return payload
	case h.to != 0 && from >= h.to:
		return bigtable.BlockAllFilter() // all of these times have expired in the class
	}
	return bigtable.ChainFilters(payload, bigtable.TimestampRangeFilterMicros(from, h.to))
}

// OldestUnexpired returns the earliest time from which on no point has expired in any class.
func (d *Dataset) OldestUnexpired(now time.Time) int64 {
	h := d.Visibility(now)
	cutoff := int64(0)
	for i := range d.Classes {
		if d.Classes[i].Bounded {
			cutoff = max(cutoff, int64(h.Cutoff(i)))
		}
	}
	return cutoff / 1000
}
