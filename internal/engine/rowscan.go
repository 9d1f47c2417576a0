package engine

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"

	"github.com/cockroachdb/pebble/v2"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tidemark-go/tidemark/internal/engine/rowfilter"
)

const (
	// maxRowBytes is the largest row that can be read.
	maxRowBytes = 256 << 20
	// stepsBeforeSeek is how many cells are skipped one by one before a seek is cheaper.
	stepsBeforeSeek = 8
	// backwardCells is how many cells of a row are collected backwards. A longer row is read again forwards, where the
	// filter's bounds save work.
	backwardCells = 64
)

// rowScanner collects the cells of one row after the other from an iterator. It skips, without copying, cells that the
// bounds, the view or the schema exclude.
type rowScanner struct {
	e      *Engine
	it     *pebble.Iterator
	schema *schema
	view   *view
	bounds rowfilter.Bounds
	slab   slab

	prefix []byte // of the current row
	column []byte // of the current column, after the row's prefix
	seek   []byte // scratch

	// rowKey and cells belong to the current row. What cells refer to is in slab, their array in a pool.
	rowKey []byte
	cells  []rowfilter.Cell
	array  *[]rowfilter.Cell // from the pool
	most   int               // cells of the longest row before in the array
	seen   int               // cells read
	size   int               // bytes of cells

	// unordered means that the row's families are not in the order of their names, which a response requires.
	unordered bool
}

// cellArrays holds arrays of cells. Rollups and wide rows have thousands of cells.
var cellArrays = sync.Pool{New: func() any { return new([]rowfilter.Cell) }}

// pooledCells is the longest array that is kept, 0.8 MB.
const pooledCells = 8192

// borrow takes an array for cells from the pool, unless the scanner has one.
func (s *rowScanner) borrow() {
	if s.array != nil {
		return
	}
	s.array = cellArrays.Get().(*[]rowfilter.Cell)
	s.cells = *s.array
}

// giveBack returns the array to the pool, if there is one, without what its cells refer to.
func (s *rowScanner) giveBack() {
	if s.array == nil {
		return
	}
	cells := s.cells[:max(s.most, len(s.cells))]
	s.cells, s.most = nil, 0
	if cap(cells) > pooledCells {
		s.array = nil
		return
	}
	clear(cells)
	*s.array = cells[:0]
	cellArrays.Put(s.array)
	s.array = nil
}

// begin records the iterator's current row.
func (s *rowScanner) begin() error {
	prefix, err := rowPrefix(s.it.Key())
	if err != nil {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	s.prefix = append(s.prefix[:0], prefix...)
	s.most = max(s.most, len(s.cells))
	s.cells, s.seen, s.size, s.unordered = s.cells[:0], 0, 0, false
	s.column = s.column[:0]
	escaped := prefix[tablePrefixLen : len(prefix)-2]
	s.rowKey = appendUnescaped(s.slab.alloc(len(escaped))[:0], escaped)
	return nil
}

// recall takes a row that is remembered as the current one.
func (s *rowScanner) recall(row *firstRow) {
	s.borrow()
	s.most = max(s.most, len(s.cells))
	s.cells, s.seen, s.size = s.cells[:0], len(row.cells), 0
	for _, c := range row.cells {
		c.Value = s.slab.copy(c.Value) // the caller may change it
		s.cells = append(s.cells, c)
		s.size += len(c.Value)
	}
	escaped := row.row[tablePrefixLen : len(row.row)-2]
	s.rowKey = appendUnescaped(s.slab.alloc(len(escaped))[:0], escaped)
}

// forward collects the row whose beginning the iterator is at, and leaves the iterator at the next row.
func (s *rowScanner) forward(ctx context.Context) error {
	if err := s.begin(); err != nil {
		return err
	}
	var col column
	var past extent
	inColumn, steps := 0, 0
	for s.it.Valid() {
		key := s.it.Key()
		if !bytes.HasPrefix(key, s.prefix) {
			break
		}
		rest := key[len(s.prefix):]
		next, err := splitColumn(rest)
		if err != nil {
			return fmt.Errorf("%w: %w", ErrDamaged, err)
		}
		if name := rest[:len(rest)-timestampLen]; !bytes.Equal(name, s.column) {
			if past != pastFamily || next.family != col.family {
				steps = 0
			}
			s.column = append(s.column[:0], name...)
			inColumn, past = 0, s.outside(next)
		}
		col = next
		if s.seen++; s.seen%workPerCheck == 0 {
			if err := s.e.stopReason(ctx); err != nil {
				return err
			}
		}
		if past == pastNothing {
			var took bool
			if took, past, err = s.take(col); err != nil {
				return err
			}
			if took {
				inColumn++
			}
			if s.bounds.CellsPerColumn > 0 && inColumn >= s.bounds.CellsPerColumn {
				past = pastColumn
			}
		}
		if past == pastNothing {
			s.it.Next()
			continue
		}
		if steps++; steps <= stepsBeforeSeek {
			s.it.Next()
		} else {
			s.it.SeekGE(s.after(past, col))
		}
		if past == pastNewer {
			past = pastNothing
		}
	}
	if s.unordered {
		slices.SortStableFunc(s.cells, func(a, b rowfilter.Cell) int { return strings.Compare(a.Family, b.Family) })
	}
	return s.it.Error()
}

// extent says how much of the following cells cannot be wanted.
type extent uint8

const (
	pastNothing extent = iota
	pastNewer          // the cells of the column that are newer than the bounds
	pastColumn         // the rest of the column
	pastFamily         // the rest of the family
)

// after returns the first key that may be wanted again.
func (s *rowScanner) after(e extent, col column) []byte {
	s.seek = append(s.seek[:0], s.prefix...)
	switch e {
	case pastFamily:
		if col.family == math.MaxUint32 {
			return afterTerminator(s.seek)
		}
		return appendFamily(s.seek, col.family+1)
	case pastNewer:
		return appendTimestamp(append(s.seek, s.column...), s.bounds.EndTimestamp-1)
	}
	return afterTerminator(append(s.seek, s.column...))
}

// backward collects the row whose end the iterator is at, and leaves the iterator at the end of the previous row.
func (s *rowScanner) backward(ctx context.Context) error {
	if err := s.begin(); err != nil {
		return err
	}
	start := s.slab.mark()
	for s.it.Valid() && bytes.HasPrefix(s.it.Key(), s.prefix) {
		if s.seen == backwardCells {
			s.slab.reset(start)
			return s.backwardLong(ctx)
		}
		s.seen++
		rest := s.it.Key()[len(s.prefix):]
		col, err := splitColumn(rest)
		if err != nil {
			return fmt.Errorf("%w: %w", ErrDamaged, err)
		}
		if s.outside(col) == pastNothing {
			if _, _, err := s.take(col); err != nil {
				return err
			}
		}
		s.it.Prev()
	}
	slices.Reverse(s.cells)
	slices.SortStableFunc(s.cells, func(a, b rowfilter.Cell) int { return strings.Compare(a.Family, b.Family) })
	return s.it.Error()
}

// backwardLong collects a long row forwards and then moves to the previous row.
func (s *rowScanner) backwardLong(ctx context.Context) error {
	s.seek = append(s.seek[:0], s.prefix...)
	row := bytes.Clone(s.prefix)
	s.it.SeekGE(s.seek)
	if err := s.it.Error(); err != nil {
		return err
	}
	if err := s.forward(ctx); err != nil {
		return err
	}
	s.it.SeekLT(row)
	return s.it.Error()
}

// outside returns how much of what follows is excluded: nothing, the column, or its whole family.
func (s *rowScanner) outside(col column) extent {
	f := s.schema.byID[col.family]
	if f == nil {
		return pastFamily
	}
	b := &s.bounds
	if b.Families != nil && !slices.Contains(b.Families, f.name) {
		return pastFamily
	}
	if s.view == nil && len(b.StartQualifier) == 0 && b.EndQualifier == nil {
		return pastNothing
	}
	s.seek = appendUnescaped(s.seek[:0], col.qualifier)
	switch {
	case b.EndQualifier != nil && bytes.Compare(s.seek, b.EndQualifier) >= 0:
		return pastFamily
	case bytes.Compare(s.seek, b.StartQualifier) < 0, s.view != nil && !s.view.hasColumn(f.name, s.seek):
		return pastColumn
	}
	return pastNothing
}

// take adds the iterator's current cell, unless its timestamp is out of bounds.
func (s *rowScanner) take(col column) (took bool, past extent, err error) {
	if col.timestamp < s.bounds.StartTimestamp {
		return false, pastColumn, nil
	}
	if s.bounds.EndTimestamp != 0 && col.timestamp >= s.bounds.EndTimestamp {
		return false, pastNewer, nil
	}
	value, err := s.it.ValueAndErr()
	if err != nil {
		return false, pastNothing, err
	}
	f := s.schema.byID[col.family]
	if s.size += len(value) + len(col.qualifier) + timestampLen; s.size > maxRowBytes {
		return false, pastNothing, status.Errorf(codes.FailedPrecondition,
			"Row %.64q is larger than %d bytes, which is the most that can be read", s.rowKey, maxRowBytes)
	}
	var qualifier []byte
	if n := len(s.cells); n > 0 && sameColumn(&s.cells[n-1], f, col.qualifier) {
		qualifier = s.cells[n-1].Qualifier
	} else {
		qualifier = appendUnescaped(s.slab.alloc(len(col.qualifier))[:0], col.qualifier)
	}
	if n := len(s.cells); n > 0 && f.name < s.cells[n-1].Family {
		s.unordered = true
	}
	s.cells = append(s.cells, rowfilter.Cell{
		Family: f.name, Qualifier: qualifier, Timestamp: col.timestamp, Value: s.slab.copy(value),
	})
	return true, pastNothing, nil
}

// sameColumn reports whether a cell belongs to a column, whose qualifier is given escaped. It may return false for a
// qualifier with escapes.
func sameColumn(c *rowfilter.Cell, f *family, escaped []byte) bool {
	return c.Family == f.name && bytes.Equal(c.Qualifier, escaped) && bytes.IndexByte(escaped, escByte) < 0
}
