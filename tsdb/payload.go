package tsdb

import (
	"strings"
	"time"

	"cloud.google.com/go/bigtable"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/gc"
	"github.com/tidemark-go/tidemark/internal/invalid"
)

// A point's payload is the cell of one column: the family is its retention class, the qualifier the slot and the codec's
// tag. The slot leaves room for other columns beside the payload.
const (
	slot      = "p:"
	afterSlot = "p;"
)

// column is one place where a point's payload may stand.
type column struct {
	family    string
	qualifier string
	name      string // family:qualifier, as the client names it
	tag       int
}

func columns(classes []class, tags []string) []column {
	var out []column
	for _, c := range classes {
		for i, tag := range tags {
			q := slot + tag
			out = append(out, column{family: c.Name, qualifier: q, name: c.Name + ":" + q, tag: i})
		}
	}
	return out
}

// horizon is what is visible at one moment: by class, the first cell timestamp that is not expired.
type horizon struct {
	d     *dataset
	now   time.Time
	first bigtable.Timestamp // the cutoff of the class that is written
}

func (d *dataset) horizon(now time.Time) horizon {
	return horizon{d: d, now: now, first: d.classes[0].cutoff(now)}
}

// cutoff returns the oldest cell timestamp that is visible in the class at an index.
func (h horizon) cutoff(class int) bigtable.Timestamp {
	if class == 0 {
		return h.first
	}
	return h.d.classes[class].cutoff(h.now)
}

// cutoff returns the oldest cell timestamp that is visible at a time, 0 where all are.
func (c *class) cutoff(now time.Time) bigtable.Timestamp {
	if !c.bounded {
		return 0
	}
	return max(0, bigtable.Timestamp(gc.Cutoff(now, c.age).UnixMicro()))
}

// oldest returns the oldest time, in units of the dataset's precision, that a visible point can have in any class.
func (h horizon) oldest() int64 {
	cutoff := h.first
	for i := range h.d.classes {
		cutoff = min(cutoff, h.cutoff(i))
	}
	units, ok := h.d.precision.AtOrAfter(cutoff.Time())
	if !ok {
		return h.d.precision.Max()
	}
	return units
}

// filter passes the visible payload cells of the dataset's points, in every class that it declares.
func (h horizon) filter() bigtable.Filter {
	if len(h.d.classes) == 1 {
		return h.classFilter(0)
	}
	filters := make([]bigtable.Filter, len(h.d.classes))
	for i := range h.d.classes {
		filters[i] = h.classFilter(i)
	}
	return bigtable.InterleaveFilters(filters...)
}

func (h horizon) classFilter(class int) bigtable.Filter {
	c := &h.d.classes[class]
	payload := bigtable.ColumnRangeFilter(c.Name, slot, afterSlot)
	if !c.bounded {
		return payload
	}
	return bigtable.ChainFilters(payload, bigtable.TimestampRangeFilterMicros(h.cutoff(class), 0))
}

// payload returns the cell that holds the payload of the point in a row, and the index of its tag. Where there are several,
// the dataset's order of classes and then of tags decides, and in one column the cell that carries the point's own time. It
// returns a nil item for a row without any visible payload, and an error for one whose only payloads have tags that the
// schema does not read.
func (h horizon) payload(row bigtable.Row, cell bigtable.Timestamp) (*bigtable.ReadItem, int, error) {
	written := &h.d.columns[0]
	if items := row[written.family]; len(items) == 1 && items[0].Column == written.name && items[0].Timestamp >= h.first {
		return &items[0], written.tag, nil // as nearly always
	}
	family, items, cutoff, visible := "", []bigtable.ReadItem(nil), bigtable.Timestamp(0), false
	for i := range h.d.columns {
		col := &h.d.columns[i]
		if col.family != family {
			family, items = col.family, row[col.family]
			cutoff = h.cutoff(i / len(h.d.tags))
		}
		var found *bigtable.ReadItem
		for j := range items {
			if items[j].Timestamp < cutoff {
				continue
			}
			visible = true
			if items[j].Column == col.name && (found == nil || items[j].Timestamp == cell) {
				found = &items[j]
			}
		}
		if found != nil {
			return found, col.tag, nil
		}
	}
	if !visible {
		return nil, 0, nil
	}
	return h.unknownTag(row)
}

// unknownTag names the payload of a row that has one, in no format that the schema reads.
func (h horizon) unknownTag(row bigtable.Row) (*bigtable.ReadItem, int, error) {
	for i := range h.d.classes {
		family := h.d.classes[i].Name
		for j, item := range row[family] {
			if tag, ok := strings.CutPrefix(item.Column, family+":"+slot); ok {
				return &row[family][j], 0, h.d.unknownTag(tag)
			}
		}
	}
	return nil, 0, nil
}

func (d *dataset) unknownTag(tag string) error {
	return invalid.New(codec.ErrUnknownTag, "tag", invalid.Quote(tag), "one of "+strings.Join(d.tags, ", "))
}

// write sets the payload in the class and tag that are written, and clears every other place where an older one may
// stand, in one atomic mutation. It returns the number of mutations too.
func (d *dataset) write(cell bigtable.Timestamp, payload []byte) (*bigtable.Mutation, int) {
	m := bigtable.NewMutation()
	for i := range d.columns[1:] {
		c := &d.columns[i+1]
		m.DeleteCellsInColumn(c.family, c.qualifier)
	}
	m.Set(d.columns[0].family, d.columns[0].qualifier, cell, payload)
	return m, len(d.columns)
}
