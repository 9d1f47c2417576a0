package engine

import (
	"bytes"
	"cmp"
	"slices"
	"strings"

	"cloud.google.com/go/bigtable/apiv2/bigtablepb"
)

// rowBuilder collects the newest cell of each column that a ReadModifyWriteRow changes.
type rowBuilder struct {
	cells []*builtCell
	at    map[string]*builtCell // by family and qualifier
	size  int                   // bytes of the values
}

type builtCell struct {
	family    string
	qualifier []byte
	timestamp int64
	value     []byte
}

// cell returns the cell of a column, and whether it existed before.
func (b *rowBuilder) cell(family string, qualifier []byte) (c *builtCell, found bool) {
	column := family + ":" + string(qualifier) // a family's name has no colon
	if c := b.at[column]; c != nil {
		return c, true
	}
	if b.at == nil {
		b.at = make(map[string]*builtCell)
	}
	c = &builtCell{family: family, qualifier: qualifier}
	b.at[column] = c
	b.cells = append(b.cells, c)
	return c, false
}

// row returns the message. It shares only the values with the builder's inputs.
func (b *rowBuilder) row(key []byte) *bigtablepb.Row {
	slices.SortFunc(b.cells, func(x, y *builtCell) int {
		return cmp.Or(strings.Compare(x.family, y.family), bytes.Compare(x.qualifier, y.qualifier))
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
