//go:build race || spoil

package readrows

import "slices"

// Spoil fills a row that was visited with garbage, in builds with the race detector or with the tag spoil. A caller
// that kept the row, or a slice or pointer of its cells, then returns the garbage, and its test fails.
func (r *Row) Spoil() {
	r.cells = r.cells[:cap(r.cells)]
	for i := range r.cells {
		r.cells[i] = Cell{Column: "spoiled:row", Timestamp: -1, Value: []byte("a row was kept after its visit")}
	}
	r.families = append(slices.Delete(r.families, 0, len(r.families)), family{"spoiled", len(r.cells)})
	r.key = "spoiled row"
}
