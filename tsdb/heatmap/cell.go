package heatmap

import (
	"math"
	"math/rand/v2"
)

const (
	maxSamples = 1024 // of a cell
	maxKey     = 256  // bytes of a key that a sample keeps
	maxShift   = 62
)

// kind is what happened to a row.
type kind uint8

const (
	reads kind = iota
	writes
	failures
	kinds
)

// cell is what happened to rows in one way within one column. Its samples are a random part of the rows: each row is in
// it with the same chance, 1 in 1<<shift.
type cell struct {
	rows, bytes, micros uint64 // micros is the sum over the rows
	shift               uint8
	gap                 uint64 // rows to pass over before the next sample
	samples             []sample
	keys                []byte // the keys of all samples, one after another
	largest             row
}

// sample is one row. Its key ends at an index of the cell's keys, and begins where the key before ends.
type sample struct{ end, bytes, micros uint32 }

// row is a row with its key.
type row struct {
	key           []byte
	bytes, micros uint32
}

// at returns the row of a sample. Its key is part of the cell's memory.
func (c *cell) at(i int) row {
	from, s := uint32(0), c.samples[i]
	if i > 0 {
		from = c.samples[i-1].end
	}
	return row{key: c.keys[from:s.end:s.end], bytes: s.bytes, micros: s.micros}
}

// weight is how many rows a sample stands for.
func (c *cell) weight() float64 {
	if len(c.samples) == 0 {
		return 0
	}
	return float64(c.rows) / float64(len(c.samples))
}

// add counts a row. It copies of the key what it keeps.
func (c *cell) add(key []byte, bytes int, micros uint32, rnd *rand.Rand) {
	size := uint32(min(uint64(max(bytes, 0)), math.MaxUint32))
	c.rows++
	c.bytes += uint64(size)
	c.micros += uint64(micros)
	if size > c.largest.bytes {
		c.largest = row{append(c.largest.key[:0], cut(key)...), size, micros}
	}
	if c.gap > 0 {
		c.gap--
		return
	}
	if len(c.samples) == maxSamples {
		c.thin(rnd)
		if rnd.Uint64()&1 == 0 { // the row is thinned as the others are
			return
		}
	}
	c.keep(row{key, size, micros})
	c.gap = gap(c.shift, rnd)
}

// keep appends a sample.
func (c *cell) keep(r row) {
	c.keys = append(c.keys, cut(r.key)...)
	c.samples = append(c.samples, sample{uint32(len(c.keys)), r.bytes, r.micros})
}

func cut(key []byte) []byte { return key[:min(len(key), maxKey)] }

// gap returns how many rows to pass over so that each row is sampled with the chance 1 in 1<<shift, whatever the others
// are: a random number, so that a load that repeats itself is not always sampled at the same place.
func gap(shift uint8, rnd *rand.Rand) uint64 {
	if shift == 0 {
		return 0
	}
	return uint64(min(rnd.ExpFloat64()/-math.Log1p(-1/float64(uint64(1)<<shift)), math.MaxInt64))
}

// thin drops each sample with the chance of one half.
func (c *cell) thin(rnd *rand.Rand) {
	kept, from, to := c.samples[:0], uint32(0), uint32(0)
	for _, s := range c.samples {
		if rnd.Uint64()&1 == 0 {
			to += uint32(copy(c.keys[to:], c.keys[from:s.end]))
			kept = append(kept, sample{to, s.bytes, s.micros})
		}
		from = s.end
	}
	c.samples, c.keys = kept, c.keys[:to]
	c.shift++
	c.gap = gap(c.shift, rnd)
}

// join adds another cell of the same kind, which it does not change. Both are thinned to the same chance first.
func (c *cell) join(o *cell, rnd *rand.Rand) {
	c.rows, c.bytes, c.micros = sum(c.rows, o.rows), sum(c.bytes, o.bytes), sum(c.micros, o.micros)
	if o.largest.bytes > c.largest.bytes {
		c.largest = o.largest.clone()
	}
	for c.shift < o.shift {
		c.thin(rnd)
	}
	drop := uint64(1)<<(c.shift-o.shift) - 1 // a sample of o stays with the chance 1 in drop+1
	for i := range o.samples {
		if drop == 0 || rnd.Uint64()&drop == 0 {
			c.keep(o.at(i))
		}
	}
	for len(c.samples) > maxSamples {
		c.thin(rnd)
	}
	c.gap = gap(c.shift, rnd)
}

// sum adds without overflow, which damaged files could cause.
func sum(a, b uint64) uint64 {
	if a > math.MaxUint64-b {
		return math.MaxUint64
	}
	return a + b
}

func (r row) clone() row {
	r.key = append([]byte(nil), r.key...)
	return r
}

func (c *cell) clone() cell {
	out := *c
	out.samples = append([]sample(nil), c.samples...)
	out.keys = append([]byte(nil), c.keys...)
	out.largest = c.largest.clone()
	return out
}
