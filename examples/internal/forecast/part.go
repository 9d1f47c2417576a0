package forecast

import (
	"math"
	"time"

	"github.com/tidemark-go/tidemark/internal/bt"
	"github.com/tidemark-go/tidemark/internal/store/rowkey"
)

// part is the range between two of the service's samples, with the rows read of it.
type part struct {
	rowkey.Range
	size   float64 // by the service's offsets
	pure   bool    // both ends, and so all rows, are in one group
	group  rowkey.Group
	pieces []*piece
	next   string  // where the walk over the groups continues
	walked bool    // to the end
	extra  float64 // estimated bytes of groups that the walk did not reach
}

// piece is the share of one group in a part, or of the rows without a group.
type piece struct {
	group rowkey.Group
	all   rowkey.Range
	next  rowkey.Range // the rest that was not read
	last  string       // the key of its last row, if a probe has read it
	left  bool         // the walk has continued after it
	done  bool         // all of it was read
	rows  int
	raw   float64 // bytes that were read
	extra float64 // estimated bytes that were not read
	stood float64 // bytes that a scattered sample represents; 0 if there is none
	seen  []observed

	counted bool // with its part, which has only one group
}

// observed is a cell.
type observed struct {
	*keeping
	age    int64 // in milliseconds; below 0 for one in the future
	newer  int32 // cells of its column
	bytes  float32
	stands float32 // how many cells of the piece it represents in a scattered sample
	perDay float32 // how many cells a day it represents in the rate of writes
}

// longest is the greatest age in milliseconds that a time.Duration can represent.
const longest = math.MaxInt64 / int64(time.Millisecond)

// removed reports whether the cell is expired after the time later.
func (o *observed) removed(later time.Duration) bool {
	age := time.Duration(o.age) * time.Millisecond
	if later > 0 && age > math.MaxInt64-later {
		age = math.MaxInt64 - later
	}
	return o.policy.Removes(age+later, int(o.newer))
}

// newParts cuts the table at samples.
func newParts(offsets map[string]int64, whole int64, cuts []rowkey.Range, known kept) []*part {
	out := make([]*part, len(cuts))
	for i, rng := range cuts {
		p := &part{Range: rng, next: rng.Start}
		start, end := offsets[rng.Start], whole
		if i+1 < len(cuts) {
			end = offsets[rng.Limit]
		}
		p.size = float64(max(0, end-start))
		group, all, ok := rowkey.GroupOf(rng.Start)
		if ok && known[group.Dataset] != nil && rng.Start >= all.Start && rng.Limit <= all.Limit {
			p.pure, p.group, p.walked = true, group, true
		}
		out[i] = p
	}
	return out
}

// read reports whether any of the part was read.
func (p *part) read() bool { return len(p.pieces) > 0 || p.walked && !p.pure }

// finished reports whether all of the part was read.
func (p *part) finished() bool { return p.read() && p.walked && p.open() == nil }

// open returns a piece that was not read to its end; nil for none.
func (p *part) open() *piece {
	for _, c := range p.pieces {
		if !c.done {
			return c
		}
	}
	return nil
}

// turn returns the piece to read next, or nil for the walk over the groups.
func (p *part) turn() *piece {
	if p.pure && len(p.pieces) == 0 {
		p.pieces = []*piece{{group: p.group, all: p.Range, next: p.Range, left: true}}
	}
	if !p.walked {
		return nil
	}
	return p.open()
}

// enter returns the piece of a row that the walk has reached. Rows without a group are one piece until a group
// begins.
func (p *part) enter(group rowkey.Group, key, limit string) *piece {
	if n := len(p.pieces); n > 0 {
		c := p.pieces[n-1]
		if c.group == group && !c.left {
			return c
		}
		c.done = c.done || !c.left // the next rows are of another group
	}
	c := &piece{group: group, all: rowkey.Range{Start: key, Limit: min(limit, p.Limit)}}
	p.pieces = append(p.pieces, c)
	return c
}

// walk records how far the walk has come: to the key last, or to the end of the part. It leaves a group with more
// than most rows for later, so that the walk reaches small groups after it.
func (p *part) walk(last string, ended bool, most int) {
	var c *piece
	if n := len(p.pieces); n > 0 {
		c = p.pieces[n-1]
	}
	switch {
	case ended:
		p.walked = true
		if c != nil && !c.left {
			c.done = true
		}
	case c != nil && c.group != rowkey.Group{} && c.rows >= most:
		c.left, c.next = true, c.all.After(last)
		p.next = c.all.Limit
		p.walked = p.next >= p.Limit
	default:
		p.next = p.After(last).Start
	}
}

// raw returns how many bytes of the part were read.
func (p *part) raw() (n float64) {
	for _, c := range p.pieces {
		n += c.raw
	}
	return n
}

// note records a row.
func (c *piece) note(row *bt.Row, kept kept, now int64) (cells int, bytes int64) {
	cells = len(row.Cells())
	key := float32(len(row.Key())) / float32(cells)
	bytes = int64(len(row.Key()))
	for name, items := range row.Families() {
		f := kept.of(c.group.Dataset, name)
		newer := int32(0)
		for i, item := range items {
			if newer++; i == 0 || item.Column != items[i-1].Column {
				newer = 0
			}
			n := len(item.Column) - len(name) - 1 + len(item.Value)
			bytes += int64(n)
			c.seen = append(c.seen, observed{keeping: f, age: min(max(now-int64(item.Timestamp)/1000, -longest), longest), newer: newer, bytes: key + float32(n), stands: 1})
		}
	}
	c.rows++
	c.raw += float64(bytes)
	return cells, bytes
}
