// Package heat is the data of heatmaps: counts and samples of rows by time, and their file. tsdb/heatmap records them,
// and examples/internal/heatview shows them.
package heat

import (
	"math"
	"math/rand/v2"
)

// The limits of a cell.
const (
	MaxSamples = 1024
	MaxKey     = 256 // bytes of a key that a sample keeps
	MaxShift   = 62
)

// Kind is what happened to a row.
type Kind uint8

// The kinds.
const (
	Reads Kind = iota
	Writes
	Failures
	Kinds
)

// Cell is what happened to rows in one way within one column. Its samples are a random part of the rows: each row is in
// it with the same chance, 1 in 1<<Shift.
type Cell struct {
	Rows, Bytes, Micros uint64 // Micros is the sum over the rows
	Shift               uint8
	Largest             Row
	Samples             []Sample
	Keys                []byte // the keys of all samples, one after another
	gap                 uint64 // rows to pass over before the next sample
}

// Sample is one row. Its key ends at an index of the cell's keys, and begins where the key before ends.
type Sample struct{ end, bytes, micros uint32 }

// Row is a row with its key.
type Row struct {
	Key           []byte
	Bytes, Micros uint32
}

// At returns the row of a sample. Its key is part of the cell's memory.
func (c *Cell) At(i int) Row {
	from, s := uint32(0), c.Samples[i]
	if i > 0 {
		from = c.Samples[i-1].end
	}
	return Row{Key: c.Keys[from:s.end:s.end], Bytes: s.bytes, Micros: s.micros}
}

// Weight is how many rows a sample stands for.
func (c *Cell) Weight() float64 {
	if len(c.Samples) == 0 {
		return 0
	}
	return float64(c.Rows) / float64(len(c.Samples))
}

// Add counts a row. It copies of the key what it keeps.
func (c *Cell) Add(key []byte, bytes int, micros uint32, rnd *rand.Rand) {
	size := uint32(min(uint64(max(bytes, 0)), math.MaxUint32))
	c.Rows++
	c.Bytes += uint64(size)
	c.Micros += uint64(micros)
	if size > c.Largest.Bytes {
		c.Largest = Row{append(c.Largest.Key[:0], Cut(key)...), size, micros}
	}
	if c.gap > 0 {
		c.gap--
		return
	}
	if len(c.Samples) == MaxSamples {
		c.Thin(rnd)
		if rnd.Uint64()&1 == 0 { // the row is thinned as the others are
			return
		}
	}
	c.Keep(Row{key, size, micros})
	c.gap = gapOf(c.Shift, rnd)
}

// Keep appends a sample.
func (c *Cell) Keep(r Row) {
	c.Keys = append(c.Keys, Cut(r.Key)...)
	c.Samples = append(c.Samples, Sample{uint32(len(c.Keys)), r.Bytes, r.Micros})
}

// Cut returns what a sample keeps of a key.
func Cut(key []byte) []byte { return key[:min(len(key), MaxKey)] }

// gapOf returns how many rows to pass over so that each row is sampled with the chance 1 in 1<<shift, whatever the
// others are: a random number, so that a load that repeats itself is not always sampled at the same place.
func gapOf(shift uint8, rnd *rand.Rand) uint64 {
	if shift == 0 {
		return 0
	}
	return uint64(min(rnd.ExpFloat64()/-math.Log1p(-1/float64(uint64(1)<<shift)), math.MaxInt64))
}

// Thin drops each sample with the chance of one half.
func (c *Cell) Thin(rnd *rand.Rand) {
	kept, from, to := c.Samples[:0], uint32(0), uint32(0)
	for _, s := range c.Samples {
		if rnd.Uint64()&1 == 0 {
			to += uint32(copy(c.Keys[to:], c.Keys[from:s.end]))
			kept = append(kept, Sample{to, s.bytes, s.micros})
		}
		from = s.end
	}
	c.Samples, c.Keys = kept, c.Keys[:to]
	c.Shift++
	c.gap = gapOf(c.Shift, rnd)
}

// Join adds another cell of the same kind, which it does not change. Both are thinned to the same chance first.
func (c *Cell) Join(o *Cell, rnd *rand.Rand) {
	c.Rows, c.Bytes, c.Micros = Sum(c.Rows, o.Rows), Sum(c.Bytes, o.Bytes), Sum(c.Micros, o.Micros)
	if o.Largest.Bytes > c.Largest.Bytes {
		c.Largest = o.Largest.Clone()
	}
	for c.Shift < o.Shift {
		c.Thin(rnd)
	}
	drop := uint64(1)<<(c.Shift-o.Shift) - 1 // a sample of o stays with the chance 1 in drop+1
	for i := range o.Samples {
		if drop == 0 || rnd.Uint64()&drop == 0 {
			c.Keep(o.At(i))
		}
	}
	for len(c.Samples) > MaxSamples {
		c.Thin(rnd)
	}
	c.gap = gapOf(c.Shift, rnd)
}

// Sum adds without overflow, which damaged files could cause.
func Sum(a, b uint64) uint64 {
	if a > math.MaxUint64-b {
		return math.MaxUint64
	}
	return a + b
}

// Clone returns the row with a key of its own.
func (r Row) Clone() Row {
	r.Key = append([]byte(nil), r.Key...)
	return r
}

func (c *Cell) clone() Cell {
	out := *c
	out.Samples = append([]Sample(nil), c.Samples...)
	out.Keys = append([]byte(nil), c.Keys...)
	out.Largest = c.Largest.Clone()
	return out
}
