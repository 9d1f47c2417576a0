package dataset

import (
	"bytes"
	"slices"
	"strings"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/internal/readrows"
)

// Cell is a stored payload with its class and qualifier, from any row.
type Cell struct {
	Class     int
	qualifier string
	value     []byte
}

// Stored is a stored point: its payloads at its time, in the order of classes and qualifiers. Without payloads the
// point does not exist.
type Stored struct {
	Key   string // of the point's row
	Cell  bigtable.Timestamp
	Cells []Cell
	Had   []string // with Head.Fields: the paths of fields that were copied of earlier states of the point
}

func (s Stored) Equal(o Stored) bool {
	return slices.EqualFunc(s.Cells, o.Cells, func(a, b Cell) bool {
		return a.Class == b.Class && a.qualifier == b.qualifier && bytes.Equal(a.value, b.value)
	})
}

// Stored returns the visible payloads at one time in a row, with classes as its families.
func (h Visibility) Stored(row *readrows.Row, classes []Class, key string, at bigtable.Timestamp) Stored {
	s := Stored{Key: key, Cell: at}
	for i := range classes {
		if at < h.Cutoff(i) {
			continue
		}
		for _, item := range row.Family(classes[i].Name) {
			qualifier := strings.TrimPrefix(item.Column, classes[i].Name+":")
			if item.Timestamp == at && strings.HasPrefix(qualifier, slot) {
				s.Cells = append(s.Cells, Cell{Class: i, qualifier: qualifier, value: item.Value})
			}
		}
	}
	return s
}

// Copies returns the mutation that makes a head hold the given points as stored. It removes those that do not exist.
func (d *Dataset) Copies(points []Stored) HeadMutation {
	m := NewHeadMutation()
	for _, p := range points {
		if d.Head.Fields {
			m.copyFields(d, p)
		}
		if d.Head.Points == 0 {
			continue
		}
		m.Clear(d.HeadColumns, p.Cell, After(p.Cell))
		for _, c := range p.Cells {
			m.Set(d.HeadClasses[c.Class].Name, c.qualifier, p.Cell, c.value)
			m.Count++
			m.Bytes += len(c.value)
		}
	}
	return m
}
