package rowfilter

import (
	"bytes"
	"math/rand/v2"
	"slices"
)

// keep removes cells that do not pass, in place.
func keep(cells []Cell, pass func(*Cell) bool) []Cell {
	n := 0
	for i := range cells {
		if !pass(&cells[i]) {
			continue
		}
		if n != i {
			cells[n] = cells[i]
		}
		n++
	}
	return cells[:n]
}

// keepRuns removes cells in place. It calls pass once for each run of adjacent cells that are the same.
func keepRuns(cells []Cell, same func(a, b *Cell) bool, pass func(*Cell) bool) []Cell {
	n := 0
	for i := 0; i < len(cells); {
		j := i + 1
		for j < len(cells) && same(&cells[i], &cells[j]) {
			j++
		}
		if pass(&cells[i]) {
			if n != i {
				copy(cells[n:], cells[i:j])
			}
			n += j - i
		}
		i = j
	}
	return cells[:n]
}

func sameFamily(a, b *Cell) bool { return a.Family == b.Family }

func sameColumn(a, b *Cell) bool {
	return a.Family == b.Family && bytes.Equal(a.Qualifier, b.Qualifier)
}

type passAll struct{}

func (passAll) apply(_ []byte, cells []Cell) []Cell { return cells }

type blockAll struct{}

func (blockAll) apply(_ []byte, cells []Cell) []Cell { return cells[:0] }

// rowSample passes each row with this probability.
type rowSample float64

func (p rowSample) apply(_ []byte, cells []Cell) []Cell {
	if rand.Float64() < float64(p) {
		return cells
	}
	return cells[:0]
}

type rowKeyPattern struct{ *pattern }

func (f *rowKeyPattern) apply(row []byte, cells []Cell) []Cell {
	if f.match(row) {
		return cells
	}
	return cells[:0]
}

// familyPattern is a pattern for families, with the list of matching names if there are few.
type familyPattern struct {
	names  []string
	listed bool
	*pattern
	buf []byte
}

func newFamilyPattern(p *pattern) *familyPattern {
	f := &familyPattern{pattern: p, listed: p.listed}
	for _, w := range p.words {
		f.names = append(f.names, string(w))
	}
	return f
}

func (f *familyPattern) apply(_ []byte, cells []Cell) []Cell {
	return keepRuns(cells, sameFamily, func(c *Cell) bool {
		if f.listed {
			return slices.Contains(f.names, c.Family)
		}
		f.buf = append(f.buf[:0], c.Family...)
		return f.match(f.buf)
	})
}

type qualifierPattern struct{ *pattern }

func (f *qualifierPattern) apply(_ []byte, cells []Cell) []Cell {
	return keepRuns(cells, sameColumn, func(c *Cell) bool { return f.match(c.Qualifier) })
}

type columnRange struct {
	family     string
	qualifiers span
}

func (f *columnRange) apply(_ []byte, cells []Cell) []Cell {
	return keep(cells, func(c *Cell) bool { return c.Family == f.family && f.qualifiers.contains(c.Qualifier) })
}

// timestampRange is the range from start (inclusive) to end (exclusive). An end of 0 means no bound.
type timestampRange struct{ start, end int64 }

func (f timestampRange) apply(_ []byte, cells []Cell) []Cell {
	return keep(cells, func(c *Cell) bool { return c.Timestamp >= f.start && (f.end == 0 || c.Timestamp < f.end) })
}

type valuePattern struct{ *pattern }

func (f *valuePattern) apply(_ []byte, cells []Cell) []Cell {
	return keep(cells, func(c *Cell) bool { return f.match(c.Value) })
}

type valueRange struct{ values span }

func (f valueRange) apply(_ []byte, cells []Cell) []Cell {
	return keep(cells, func(c *Cell) bool { return f.values.contains(c.Value) })
}

// valueMask passes values of the mask's length in which all bits of the mask are set.
type valueMask []byte

func (m valueMask) apply(_ []byte, cells []Cell) []Cell {
	return keep(cells, func(c *Cell) bool {
		if len(c.Value) != len(m) {
			return false
		}
		for i, b := range m {
			if c.Value[i]&b != b {
				return false
			}
		}
		return true
	})
}

type rowOffset int

func (n rowOffset) apply(_ []byte, cells []Cell) []Cell { return cells[min(int(n), len(cells)):] }

type rowLimit int

func (n rowLimit) apply(_ []byte, cells []Cell) []Cell { return cells[:min(int(n), len(cells))] }

type columnLimit int

func (n columnLimit) apply(_ []byte, cells []Cell) []Cell {
	if len(cells) <= int(n) {
		return cells
	}
	seen, kept := 0, 0
	for i := range cells {
		// The last kept cell belongs to the current column, unless the column is new.
		if i == 0 || !sameColumn(&cells[kept-1], &cells[i]) {
			seen = 0
		}
		if seen == int(n) {
			continue
		}
		seen++
		if kept != i {
			cells[kept] = cells[i]
		}
		kept++
	}
	return cells[:kept]
}

type stripValue struct{}

func (stripValue) apply(_ []byte, cells []Cell) []Cell {
	for i := range cells {
		cells[i].Value = nil
	}
	return cells
}

type applyLabel []string

func (l applyLabel) apply(_ []byte, cells []Cell) []Cell {
	for i := range cells {
		cells[i].Labels = l
	}
	return cells
}
