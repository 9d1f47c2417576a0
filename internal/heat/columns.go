package heat

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"time"
)

// Column is a part of the time: from ID times the width of the columns, since 1970, for one width.
type Column struct {
	ID    int64
	Cells [Kinds]Cell
}

// Join adds the cells of another column.
func (c *Column) Join(o *Column, rnd *rand.Rand) {
	for k := range c.Cells {
		c.Cells[k].Join(&o.Cells[k], rnd)
	}
}

// Columns are in the order of time. Times without a row have none. All have the same width, so columns of two processes
// begin at the same times.
type Columns struct {
	Width time.Duration
	List  []*Column
}

// ID returns the id of the column with a time.
func (c *Columns) ID(at time.Time) int64 { return floor(at.UnixNano(), int64(c.Width)) }

func floor(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

// Start returns when a column begins.
func (c *Columns) Start(id int64) time.Time { return time.Unix(0, id*int64(c.Width)).UTC() }

// Span returns how many columns there would be from the first to the last, if none were left out.
func (c *Columns) Span() int64 {
	if len(c.List) == 0 {
		return 0
	}
	return c.List[len(c.List)-1].ID - c.List[0].ID + 1
}

// Find returns the column of an id, made if it is not there.
func (c *Columns) Find(id int64) *Column {
	if n := len(c.List); n > 0 && c.List[n-1].ID == id {
		return c.List[n-1]
	}
	i, ok := slices.BinarySearchFunc(c.List, id, func(col *Column, id int64) int { return cmp.Compare(col.ID, id) })
	if !ok {
		c.List = slices.Insert(c.List, i, &Column{ID: id})
	}
	return c.List[i]
}

// Widen doubles the width, which joins columns in pairs.
func (c *Columns) Widen(rnd *rand.Rand) {
	c.Width *= 2
	kept := c.List[:0]
	for _, col := range c.List {
		col.ID = floor(col.ID, 2)
		if n := len(kept); n > 0 && kept[n-1].ID == col.ID {
			kept[n-1].Join(col, rnd)
			continue
		}
		kept = append(kept, col)
	}
	clear(c.List[len(kept):])
	c.List = kept
}

// Drop removes the columns before an id.
func (c *Columns) Drop(before int64) {
	c.List = slices.DeleteFunc(c.List, func(col *Column) bool { return col.ID < before })
}

// Clone returns a copy that shares nothing with c.
func (c *Columns) Clone() Columns {
	out := Columns{Width: c.Width, List: make([]*Column, len(c.List))}
	for i, col := range c.List {
		copied := Column{ID: col.ID}
		for k := range col.Cells {
			copied.Cells[k] = col.Cells[k].clone()
		}
		out.List[i] = &copied
	}
	return out
}
