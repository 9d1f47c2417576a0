package readrows

import (
	"iter"
	"maps"
	"slices"

	"cloud.google.com/go/bigtable"
)

// Row is one row of a read. A nil Row has no key and no cells.
//
// A row of a Reader is valid until the reader takes the next chunk: its cells are then used again. Keys, columns and
// values never change, so a caller may keep them. A kept key holds up to a kilobyte of memory, a kept value what came
// with it.
type Row struct {
	key      string
	cells    []Cell
	families []family
	used     int // the most cells of a row since the reader's last Reset
}

// Cell is one cell of a row.
type Cell struct {
	Column    string // family:qualifier
	Timestamp bigtable.Timestamp
	Value     []byte
}

// family is a family of a row, whose cells end at an index.
type family struct {
	name string
	end  int
}

// Key returns the row's key.
func (r *Row) Key() string {
	if r == nil {
		return ""
	}
	return r.key
}

// Cells returns all cells, those of a family together, in the order in which the service sent them.
func (r *Row) Cells() []Cell {
	if r == nil {
		return nil
	}
	return r.cells
}

// Family returns the cells of a family, in the order in which the service sent them.
func (r *Row) Family(name string) []Cell {
	if r == nil {
		return nil
	}
	from := 0
	for _, f := range r.families {
		if f.name == name {
			return r.cells[from:f.end]
		}
		from = f.end
	}
	return nil
}

// Families returns the families that have cells, with their cells.
func (r *Row) Families() iter.Seq2[string, []Cell] {
	return func(yield func(string, []Cell) bool) {
		if r == nil {
			return
		}
		from := 0
		for _, f := range r.families {
			if !yield(f.name, r.cells[from:f.end]) {
				return
			}
			from = f.end
		}
	}
}

// Clone returns a copy that stays valid.
func (r *Row) Clone() *Row {
	if r == nil {
		return nil
	}
	return &Row{key: r.key, cells: slices.Clone(r.cells), families: slices.Clone(r.families)}
}

// add adds a cell. A family that was left before gets it behind its other cells.
func (r *Row) add(name string, c Cell) {
	last := len(r.families) - 1
	if last >= 0 && r.families[last].name == name {
		r.cells = append(r.cells, c)
		r.families[last].end++
		return
	}
	i := slices.IndexFunc(r.families, func(f family) bool { return f.name == name })
	if i < 0 {
		r.cells = append(r.cells, c)
		r.families = append(r.families, family{name, len(r.cells)})
		return
	}
	r.cells = slices.Insert(r.cells, r.families[i].end, c)
	for ; i <= last; i++ {
		r.families[i].end++
	}
}

// reset empties the row and keeps its memory.
func (r *Row) reset(key string) {
	r.used = max(r.used, len(r.cells))
	r.key, r.cells, r.families = key, r.cells[:0], r.families[:0]
}

// FromClient returns a row of the official client, its families in the order of their names.
func FromClient(from bigtable.Row) *Row {
	r := &Row{key: from.Key()}
	for _, name := range slices.Sorted(maps.Keys(from)) {
		for _, item := range from[name] {
			r.add(name, Cell{Column: item.Column, Timestamp: item.Timestamp, Value: item.Value})
		}
	}
	return r
}
