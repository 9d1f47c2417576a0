package heatmap

import (
	"math/rand/v2"
	"slices"
	"time"
)

// column is a part of the time: from id times the width of the columns, since 1970, for one width.
type column struct {
	id    int64
	cells [kinds]cell
}

func (c *column) join(o *column, rnd *rand.Rand) {
	for k := range c.cells {
		c.cells[k].join(&o.cells[k], rnd)
	}
}

// columns are in the order of time. Times without a row have none. All have the same width, so columns of two processes
// begin at the same times.
type columns struct {
	width time.Duration
	list  []*column
}

// columnID returns the id of the column with a time.
func (c *columns) id(at time.Time) int64 { return floor(at.UnixNano(), int64(c.width)) }

func floor(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

// start returns when a column begins.
func (c *columns) start(id int64) time.Time { return time.Unix(0, id*int64(c.width)).UTC() }

// span returns how many columns there would be from the first to the last, if none were left out.
func (c *columns) span() int64 {
	if len(c.list) == 0 {
		return 0
	}
	return c.list[len(c.list)-1].id - c.list[0].id + 1
}

// find returns the column of an id, made if it is not there.
func (c *columns) find(id int64) *column {
	if n := len(c.list); n > 0 && c.list[n-1].id == id {
		return c.list[n-1]
	}
	i, ok := slices.BinarySearchFunc(c.list, id, func(col *column, id int64) int {
		switch {
		case col.id < id:
			return -1
		case col.id > id:
			return 1
		}
		return 0
	})
	if !ok {
		c.list = slices.Insert(c.list, i, &column{id: id})
	}
	return c.list[i]
}

// widen doubles the width, which joins columns in pairs.
func (c *columns) widen(rnd *rand.Rand) {
	c.width *= 2
	kept := c.list[:0]
	for _, col := range c.list {
		col.id = floor(col.id, 2)
		if n := len(kept); n > 0 && kept[n-1].id == col.id {
			kept[n-1].join(col, rnd)
			continue
		}
		kept = append(kept, col)
	}
	clear(c.list[len(kept):])
	c.list = kept
}

// drop removes the columns before an id.
func (c *columns) drop(before int64) {
	c.list = slices.DeleteFunc(c.list, func(col *column) bool { return col.id < before })
}

func (c *columns) clone() columns {
	out := columns{width: c.width, list: make([]*column, len(c.list))}
	for i, col := range c.list {
		copied := column{id: col.id}
		for k := range col.cells {
			copied.cells[k] = col.cells[k].clone()
		}
		out.list[i] = &copied
	}
	return out
}
