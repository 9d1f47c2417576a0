// Package rowfilter evaluates Bigtable's row filters: a RowFilter message is checked and compiled once a request, and
// then applied to one row after another.
//
// Meaning follows the documentation of the RowFilter message. Where it leaves something open, a filter that some
// Bigtable might refuse is refused here, so that what passes here passes there.
package rowfilter

import (
	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
)

// Cell is one cell of a row. Family, Qualifier and Value may alias memory that is reused once the row was evaluated.
type Cell struct {
	Family    string
	Qualifier []byte
	// Timestamp is in microseconds.
	Timestamp int64
	Value     []byte
	// Labels is shared between cells: it is read, never changed.
	Labels []string
}

// Filter is a compiled filter. It keeps scratch memory between rows, so one goroutine at a time may use it. A nil
// *Filter passes everything.
type Filter struct {
	root   node
	sinks  []*sink
	bounds Bounds

	acc, tmp []Cell
}

// node is one filter of the tree. apply may change cells in place; what it returns aliases cells or the node's own
// scratch, and holds until the node is applied again.
type node interface {
	apply(row []byte, cells []Cell) []Cell
	narrow(n *narrowing)
}

// Compile checks a filter and prepares it. A filter that the service would refuse gives a gRPC status InvalidArgument
// that names the field. A nil message gives a filter that passes everything.
func Compile(f *btpb.RowFilter) (*Filter, error) {
	if f == nil {
		return &Filter{root: passAll{}}, nil
	}
	c := compiler{}
	root, err := c.compile(f)
	if err != nil {
		return nil, err
	}
	out := &Filter{root: root, sinks: c.sinks}
	out.bounds = boundsOf(root)
	return out, nil
}

// Apply returns the cells of one row that pass, ordered as the service orders them. cells come by family, qualifier
// and descending timestamp; the slice is used as scratch, and the answer, which may alias it, holds until the next
// Apply.
func (f *Filter) Apply(rowKey []byte, cells []Cell) []Cell {
	if f == nil || len(cells) == 0 {
		return cells
	}
	for _, s := range f.sinks {
		s.out = s.out[:0]
	}
	out := f.root.apply(rowKey, cells)
	if len(f.sinks) == 0 {
		return out
	}
	f.acc = append(f.acc[:0], out...)
	for _, s := range f.sinks {
		f.tmp = merge(f.tmp[:0], f.acc, s.out)
		f.acc, f.tmp = f.tmp, f.acc
	}
	return f.acc
}

// Bounds says what storage may leave out when it reads rows for Apply. Its slices are shared: do not change them.
func (f *Filter) Bounds() Bounds {
	if f == nil {
		return Bounds{}
	}
	return f.bounds
}
