package rowfilter

import (
	"bytes"
	"slices"
)

// Bounds says which cells can matter to a filter. If storage leaves out cells outside the bounds, and then all but the
// first CellsPerColumn of each column, Apply returns the same cells. The zero value excludes nothing.
type Bounds struct {
	// Families are the families that matter: nil means all, empty means none.
	Families []string
	// StartQualifier (inclusive) and EndQualifier (exclusive) bound the qualifiers of each family. A nil EndQualifier
	// means no bound.
	StartQualifier, EndQualifier []byte
	// StartTimestamp (inclusive) and EndTimestamp (exclusive) are in microseconds. An EndTimestamp of 0 means no bound.
	StartTimestamp, EndTimestamp int64
	// CellsPerColumn is how many of the newest cells of a column within the bounds above matter; 0 means all.
	CellsPerColumn int
}

// None reports whether no cell matters: the filter passes nothing, whatever the row.
func (b Bounds) None() bool { return b.Families != nil && len(b.Families) == 0 }

func (b Bounds) qualifiers() span { return span{b.StartQualifier, b.EndQualifier} }

// union returns bounds that contain a and b.
func union(a, b Bounds) Bounds {
	if a.None() {
		return b
	}
	if b.None() {
		return a
	}
	var out Bounds
	if a.Families != nil && b.Families != nil {
		out.Families = append(slices.Clone(a.Families), b.Families...)
		slices.Sort(out.Families)
		out.Families = slices.Compact(out.Families)
	}
	q := a.qualifiers().hull(b.qualifiers())
	out.StartQualifier, out.EndQualifier = q.start, q.end
	out.StartTimestamp = min(a.StartTimestamp, b.StartTimestamp)
	if a.EndTimestamp != 0 && b.EndTimestamp != 0 {
		out.EndTimestamp = max(a.EndTimestamp, b.EndTimestamp)
	}
	// The newest cells before one end are not those before another.
	if a.CellsPerColumn != 0 && b.CellsPerColumn != 0 && a.EndTimestamp == b.EndTimestamp {
		out.CellsPerColumn = max(a.CellsPerColumn, b.CellsPerColumn)
	}
	return out
}

// narrowing collects the bounds of a chain. Cells that a filter excludes can be left out before the filters ahead of it
// only if those filters give the same result without them. The flags record that.
type narrowing struct {
	Bounds
	// open: all filters so far look at each cell or column alone, so whole columns and the oldest cells can be left
	// out.
	open bool
	// newest: the newest cells can be left out, because no limit has counted them.
	newest bool
	// limit: all filters so far pass a column's cells as a contiguous range or are part of the bounds, so a limit can
	// count before them.
	limit bool
}

func boundsOf(f node) Bounds {
	n := narrowing{open: true, newest: true, limit: true}
	f.narrow(&n)
	return n.Bounds
}

func (n *narrowing) close() { n.open, n.newest, n.limit = false, false, false }

func (n *narrowing) none() {
	if n.open {
		n.Bounds = Bounds{Families: []string{}}
	}
}

func (n *narrowing) families(names []string) {
	if !n.open {
		return
	}
	out := []string{}
	for _, name := range names {
		if (n.Families == nil || slices.Contains(n.Families, name)) && !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	n.Families = out
}

func (n *narrowing) qualifiers(s span) {
	if !n.open {
		return
	}
	s = n.Bounds.qualifiers().intersect(s)
	if s.empty() {
		n.none()
		return
	}
	n.StartQualifier, n.EndQualifier = s.start, s.end
}

func (n *narrowing) timestamps(start, end int64) {
	if !n.open {
		return
	}
	n.StartTimestamp = max(n.StartTimestamp, start)
	if end < 0 { // no cell is that old
		n.none()
	}
	if end <= 0 {
		return
	}
	if !n.newest {
		n.limit = false
		return
	}
	if n.EndTimestamp == 0 || end < n.EndTimestamp {
		n.EndTimestamp = end
	}
}

func (n *narrowing) cellsPerColumn(limit int) {
	if n.limit && (n.CellsPerColumn == 0 || limit < n.CellsPerColumn) {
		n.CellsPerColumn = limit
	}
	n.newest = false
}

// within narrows by the bounds of a filter that may do anything inside them.
func (n *narrowing) within(b Bounds) {
	if b.Families != nil {
		n.families(b.Families)
	}
	n.qualifiers(b.qualifiers())
	n.timestamps(b.StartTimestamp, b.EndTimestamp)
	if b.CellsPerColumn != 0 {
		n.cellsPerColumn(b.CellsPerColumn)
	}
	n.close()
}

func (passAll) narrow(*narrowing)    {}
func (stripValue) narrow(*narrowing) {}
func (applyLabel) narrow(*narrowing) {}

// These pass all of a row or nothing, so other filters are not affected.
func (rowSample) narrow(*narrowing)      {}
func (*rowKeyPattern) narrow(*narrowing) {}

func (blockAll) narrow(n *narrowing) { n.none() }

func (f *familyPattern) narrow(n *narrowing) {
	if f.listed {
		n.families(f.names)
	}
}

func (f *qualifierPattern) narrow(n *narrowing) {
	switch {
	case f.listed && len(f.words) == 0:
		n.none()
	case f.listed:
		n.qualifiers(span{slices.MinFunc(f.words, bytes.Compare), after(slices.MaxFunc(f.words, bytes.Compare))})
	case f.prefixed:
		n.qualifiers(span{f.prefix, PrefixEnd(f.prefix)})
	}
}

func (f *columnRange) narrow(n *narrowing) {
	n.families([]string{f.family})
	n.qualifiers(f.qualifiers)
}

func (f timestampRange) narrow(n *narrowing) { n.timestamps(f.start, f.end) }

func (*valuePattern) narrow(n *narrowing) { n.limit = false }
func (valueRange) narrow(n *narrowing)    { n.limit = false }
func (valueMask) narrow(n *narrowing)     { n.limit = false }

func (rowOffset) narrow(n *narrowing) { n.close() }

func (f rowLimit) narrow(n *narrowing) {
	n.cellsPerColumn(int(f))
	n.close()
}

func (f columnLimit) narrow(n *narrowing) { n.cellsPerColumn(int(f)) }

func (f chain) narrow(n *narrowing) {
	for _, sub := range f {
		sub.narrow(n)
	}
}

func (f *interleave) narrow(n *narrowing) {
	b := Bounds{Families: []string{}}
	for _, sub := range f.subs {
		b = union(b, boundsOf(sub))
	}
	n.within(b)
}

func (f *condition) narrow(n *narrowing) {
	n.within(union(boundsOf(f.predicate), union(boundsOf(f.then), boundsOf(f.otherwise))))
}

func (*sink) narrow(n *narrowing) { n.close() }

// PrefixEnd returns the end of the range of texts that start with prefix, or nil if there is none.
func PrefixEnd(prefix []byte) []byte {
	for i := len(prefix) - 1; i >= 0; i-- {
		if prefix[i] != 0xFF {
			end := bytes.Clone(prefix[:i+1])
			end[i]++
			return end
		}
	}
	return nil
}
