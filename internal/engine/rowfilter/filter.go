// Package rowfilter evaluates Bigtable's row filters. A RowFilter message is checked and compiled once per request, and
// then applied to each row.
//
// Filters behave as the documentation of the RowFilter message says. If the documentation leaves a case open and some
// Bigtable might refuse the filter, this package refuses it too: a filter that works here works there.
package rowfilter

import (
	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
)

// Cell is one cell of a row. Family, Qualifier and Value may alias memory that is reused after the row.
type Cell struct {
	Family    string
	Qualifier []byte
	// Timestamp is in microseconds.
	Timestamp int64
	Value     []byte
	// Labels is shared between cells and must not be changed.
	Labels []string
}

// Filter is a compiled filter. It reuses memory between rows, so only one goroutine at a time may use it. A nil *Filter
// passes everything.
type Filter struct {
	root   node
	sinks  []*sink
	bounds Bounds

	acc, tmp []Cell
}

// node is one filter of the tree. apply may change cells in place. Its result aliases cells or the node's own memory,
// and is valid until the next apply.
type node interface {
	apply(row []byte, cells []Cell) []Cell
	narrow(n *narrowing)
}

// Compile checks and compiles a filter. If the service would refuse the filter, the error is a gRPC status
// InvalidArgument that names the field. A nil message gives a filter that passes everything.
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

// Apply returns the cells of a row that pass, in the service's order. cells must be ordered by family, qualifier and
// descending timestamp. Apply reuses the slice; its result may alias it and is valid until the next Apply.
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

// Bounds returns which cells storage may leave out when it reads rows for Apply. The caller must not change its slices.
func (f *Filter) Bounds() Bounds {
	if f == nil {
		return Bounds{}
	}
	return f.bounds
}
