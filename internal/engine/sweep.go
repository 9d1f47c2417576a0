package engine

import (
	"bytes"
	"fmt"
)

// sweep decides, cell by cell in their stored order, what the GC rules remove.
type sweep struct {
	schema *schema
	now    int64

	prefix []byte // of the current row
	column []byte // of the current column, after the row's prefix
	newer  int    // cells of the column before the current one
	rows   int
}

func newSweep(s *schema, now int64) *sweep { return &sweep{schema: s, now: now} }

// enter records the row of a cell, and reports whether the row is a new one.
func (w *sweep) enter(key []byte) (fresh bool, err error) {
	if len(w.prefix) > 0 && bytes.HasPrefix(key, w.prefix) {
		return false, nil
	}
	prefix, err := rowPrefix(key)
	if err != nil {
		return false, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	w.prefix = append(w.prefix[:0], prefix...)
	w.column, w.newer = w.column[:0], 0
	w.rows++
	return true, nil
}

// removes reports whether the GC rules remove a cell of the current row.
func (w *sweep) removes(key []byte) (bool, error) {
	rest := key[len(w.prefix):]
	col, err := splitColumn(rest)
	if err != nil {
		return false, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	if name := rest[:len(rest)-timestampLen]; !bytes.Equal(name, w.column) {
		w.column, w.newer = append(w.column[:0], name...), 0
	}
	newer := w.newer
	w.newer++
	if w.schema.dropped(col.family) {
		return true, nil
	}
	f := w.schema.byID[col.family]
	return f != nil && f.rule != nil && expired(f.rule, col.timestamp, newer, w.now), nil
}
