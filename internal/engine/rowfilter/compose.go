package rowfilter

import (
	"bytes"
	"cmp"
)

// order compares cells by family, qualifier and timestamp, newest first, as the service orders a row.
func order(a, b *Cell) int {
	if c := cmp.Compare(a.Family, b.Family); c != 0 {
		return c
	}
	if c := bytes.Compare(a.Qualifier, b.Qualifier); c != 0 {
		return c
	}
	return cmp.Compare(b.Timestamp, a.Timestamp)
}

// merge appends two ordered lists to dst, in order. Of equal cells, those of a come first.
func merge(dst, a, b []Cell) []Cell {
	for len(a) > 0 && len(b) > 0 {
		if order(&a[0], &b[0]) <= 0 {
			dst, a = append(dst, a[0]), a[1:]
		} else {
			dst, b = append(dst, b[0]), b[1:]
		}
	}
	return append(append(dst, a...), b...)
}

// chain sends a row through one filter after another.
type chain []node

func (f chain) apply(row []byte, cells []Cell) []Cell {
	for _, n := range f {
		if len(cells) == 0 {
			break
		}
		cells = n.apply(row, cells)
	}
	return cells
}

// interleave applies each filter to a copy of the row and merges the results.
type interleave struct {
	subs []node

	in, acc, tmp []Cell
}

func (f *interleave) apply(row []byte, cells []Cell) []Cell {
	f.acc = f.acc[:0]
	for i, n := range f.subs {
		in := cells
		if i < len(f.subs)-1 {
			f.in = append(f.in[:0], cells...)
			in = f.in
		}
		out := n.apply(row, in)
		f.tmp = merge(f.tmp[:0], f.acc, out)
		f.acc, f.tmp = f.tmp, f.acc
	}
	return f.acc
}

// condition applies then if predicate passes any cell, otherwise if not.
type condition struct {
	predicate, then, otherwise node

	in []Cell
}

func (f *condition) apply(row []byte, cells []Cell) []Cell {
	f.in = append(f.in[:0], cells...)
	if len(f.predicate.apply(row, f.in)) > 0 {
		return f.then.apply(row, cells)
	}
	return f.otherwise.apply(row, cells)
}

// sink sends its cells directly to the output of the whole filter.
type sink struct {
	out []Cell
}

func (f *sink) apply(_ []byte, cells []Cell) []Cell {
	f.out = append(f.out, cells...)
	return cells[:0]
}
