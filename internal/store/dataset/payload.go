package dataset

import (
	"slices"
	"strings"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/internal/readrows"
	"github.com/tidemark-go/tidemark/internal/store/lastvalue"
)

// A point's payload is the cell of one column: the family is its retention class, the qualifier the slot and the
// codec's tag. The slot leaves room for other columns next to the payload.
const (
	slot      = "p:"
	afterSlot = "p;"
)

// Column is one column that may hold a point's payload.
type Column struct {
	Family    string
	Qualifier string
	Name      string // family:qualifier, as in the client
	Tag       int
}

func columns(classes []Class, tags []string) []Column {
	var out []Column
	for _, c := range classes {
		for i, tag := range tags {
			q := slot + tag
			out = append(out, Column{Family: c.Name, Qualifier: q, Name: c.Name + ":" + q, Tag: i})
		}
	}
	return out
}

// Payload returns the cell with the payload of the point in a row, and the index of its tag. If there are several, it
// takes the first in the dataset's order of classes and then of tags; in one column it takes the cell with the point's
// own time. It returns a nil item if the row has no visible payload, and an error if the schema does not read the tags
// of any payload.
func (h Visibility) Payload(row *readrows.Row, cell bigtable.Timestamp) (*readrows.Cell, int, error) {
	written := &h.D.Columns[0]
	if items := row.Family(written.Family); len(items) == 1 && items[0].Column == written.Name && items[0].Timestamp >= h.first {
		return &items[0], written.Tag, nil // the usual case
	}
	family, items, cutoff, visible := "", []readrows.Cell(nil), bigtable.Timestamp(0), false
	for i := range h.D.Columns {
		col := &h.D.Columns[i]
		if col.Family != family {
			family, items = col.Family, row.Family(col.Family)
			cutoff = h.Cutoff(i / len(h.D.Tags))
		}
		var found *readrows.Cell
		for j := range items {
			if items[j].Timestamp < cutoff {
				continue
			}
			visible = true
			if items[j].Column == col.Name && (found == nil || items[j].Timestamp == cell) {
				found = &items[j]
			}
		}
		if found != nil {
			return found, col.Tag, nil
		}
	}
	if !visible {
		return nil, 0, nil
	}
	return h.unknownTag(row)
}

// Hit returns the point of a time and an ID, whose payload is in a row. It returns false if no payload is visible.
func (h Visibility) Hit(row *readrows.Row, path string, units int64, id string) (Hit, bool) {
	item, tag, err := h.Payload(row, bigtable.Timestamp(h.D.Precision.CellMicros(units)))
	if item == nil {
		return Hit{}, false
	}
	return Hit{Path: path, Units: units, ID: id, Payload: item.Value, Tag: tag, Err: err}, true
}

// unknownTag returns a row's first payload cell and an error that names its tag. It is called if the schema reads no
// tag of the row.
func (h Visibility) unknownTag(row *readrows.Row) (*readrows.Cell, int, error) {
	for i := range h.D.Classes {
		family := h.D.Classes[i].Name
		for j, item := range row.Family(family) {
			if tag, ok := strings.CutPrefix(item.Column, family+":"+slot); ok {
				return &row.Family(family)[j], 0, h.D.unknownTag(tag)
			}
		}
	}
	return nil, 0, nil
}

func (d *Dataset) unknownTag(tag string) error {
	return invalid.New(codec.ErrUnknownTag, "tag", invalid.Quote(tag), "one of "+strings.Join(d.Tags, ", "))
}

// TagOf returns the index of a tag, or 0 and an error that names it if the schema does not read it.
func (d *Dataset) TagOf(tag string) (int, error) {
	if i := slices.Index(d.Tags, tag); i >= 0 {
		return i, nil
	}
	return 0, d.unknownTag(tag)
}

// Mutation writes the payload in the current class and tag, and clears every other column that may hold an older
// payload, in one atomic mutation. It also returns the number of mutations.
func (d *Dataset) Mutation(cell bigtable.Timestamp, payload []byte) (*bigtable.Mutation, int) {
	m := bigtable.NewMutation()
	d.SetPayload(m, cell, payload)
	return m, len(d.Columns)
}

// mutator takes mutations, as a *bigtable.Mutation does.
type mutator interface {
	Set(family, column string, ts bigtable.Timestamp, value []byte)
	DeleteCellsInColumn(family, column string)
}

// SetPayload adds what Mutation returns to m: one mutation for each of the dataset's columns.
func (d *Dataset) SetPayload(m mutator, cell bigtable.Timestamp, payload []byte) {
	for i := range d.Columns[1:] {
		c := &d.Columns[i+1]
		m.DeleteCellsInColumn(c.Family, c.Qualifier)
	}
	m.Set(d.Columns[0].Family, d.Columns[0].Qualifier, cell, payload)
}

// ColumnOf returns the index of a payload's column. The column must be one of the dataset's.
func (d *Dataset) ColumnOf(name string) int {
	for i := range d.Columns {
		if d.Columns[i].Name == name {
			return i
		}
	}
	return -1
}

// Shows reports whether a cached newest point is still visible: whether a read would return it again.
func (h Visibility) Shows(n *lastvalue.Newest) bool {
	return !n.Found || n.Units >= h.Oldest() && n.Cell >= h.Cutoff(n.Column/len(h.D.Tags))
}

// EveryPayload passes the payload cells of points in every class of the dataset, expired or not.
func (h Visibility) EveryPayload() bigtable.Filter {
	return AnyOf(len(h.D.Classes), func(i int) bigtable.Filter {
		return bigtable.ColumnRangeFilter(h.D.Classes[i].Name, slot, afterSlot)
	})
}

// Hit is an entity's newest visible point, not decoded yet.
type Hit struct {
	Path    string
	Units   int64
	ID      string
	Payload []byte
	Tag     int
	Err     error // why the payload cannot be decoded
}
