package heatview

import (
	"math/bits"
	"math/rand/v2"
	"time"

	"github.com/tidemark-go/tidemark/internal/heat"
)

// Count is how many rows of one kind a column has, with the keys of some of them.
type Count struct {
	At   time.Time // a time within the column
	Kind heat.Kind
	Rows uint64
	// Keys are the row keys of a random part of the rows, so each stands for the same number of them. There is at least
	// one.
	Keys [][]byte
}

// FromCounts makes a recording of rows that a model has computed. It covers the time from one point up to another, in
// columns of a width from a millisecond to a day, at most 256. Requests have no duration.
func FromCounts(from, to time.Time, width time.Duration, counts []Count) *heat.Recording {
	r := &heat.Recording{Columns: heat.Columns{Width: width}, First: from.UTC(), Last: to.UTC()}
	rnd := rand.New(rand.NewPCG(1, 3)) // the same counts give the same recording
	for _, c := range counts {
		if c.Rows == 0 || len(c.Keys) == 0 {
			continue
		}
		o := heat.Cell{Rows: c.Rows}
		// Rows were sampled with a chance near 1 in 1<<shift, by which cells are merged.
		o.Shift = min(uint8(max(bits.Len64(c.Rows/uint64(len(c.Keys))), 1))-1, heat.MaxShift) //nolint:gosec // at most 64
		for _, key := range c.Keys {
			o.Keep(heat.Row{Key: key})
		}
		o.Largest = heat.Row{Key: heat.Cut(c.Keys[0])}.Clone()
		for len(o.Samples) > heat.MaxSamples {
			o.Thin(rnd)
		}
		r.Columns.Find(r.Columns.ID(c.At)).Cells[c.Kind].Join(&o, rnd)
	}
	return r
}
