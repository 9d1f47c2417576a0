package engine

import (
	"bytes"
	"slices"
	"strings"

	"cloud.google.com/go/bigtable/apiv2/bigtablepb"
)

// rowBuilder gathers the newest cell of each column that a ReadModifyWriteRow changed.
type rowBuilder struct {
	cells []builtCell
	at    map[string]int // in cells, by family and qualifier
}

type builtCell struct {
	family    string
	qualifier []byte
	timestamp int64
	value     []byte
}

// set adds a cell. A later one replaces an earlier one of the same column.
func (b *rowBuilder) set(family string, qualifier []byte, ts int64, value []byte) {
	c := builtCell{family, qualifier, ts, value}
	column := family + ":" + string(qualifier) // a family's name has no colon
	if i, ok := b.at[column]; ok {
		b.cells[i] = c
		return
	}
	if b.at == nil {
		b.at = make(map[string]int)
	}
	b.at[column] = len(b.cells)
	b.cells = append(b.cells, c)
}

// row returns the message. It does not alias what was set but for the values.
func (b *rowBuilder) row(key []byte) *bigtablepb.Row {
	slices.SortFunc(b.cells, func(x, y builtCell) int {
		if c := strings.Compare(x.family, y.family); c != 0 {
			return c
		}
		return bytes.Compare(x.qualifier, y.qualifier)
	})
	row := &bigtablepb.Row{Key: bytes.Clone(key)}
	for _, c := range b.cells {
		if n := len(row.Families); n == 0 || row.Families[n-1].Name != c.family {
			row.Families = append(row.Families, &bigtablepb.Family{Name: c.family})
		}
		f := row.Families[len(row.Families)-1]
		f.Columns = append(f.Columns, &bigtablepb.Column{
			Qualifier: append([]byte{}, c.qualifier...),
			Cells:     []*bigtablepb.Cell{{TimestampMicros: c.timestamp, Value: c.value}},
		})
	}
	return row
}
