package heatmap

import (
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"time"

	"github.com/tidemark-go/tidemark/internal/invalid"
)

// Count is how many rows of one kind a part of the time has, with the keys of some of them.
type Count struct {
	// At is a time within the column in which the rows are counted.
	At time.Time
	// Metric is Reads, Writes or Failures.
	Metric Metric
	// Rows are all rows, and Bytes the bytes of all of them.
	Rows, Bytes uint64
	// Keys are the row keys of a random part of the rows, so each stands for the same number of them. Of more than 1,024, a random part is used.
	Keys [][]byte
}

// FromCounts makes a recording of rows that were not recorded here, but counted elsewhere or computed, such as by a model or from a log of
// accesses. It covers the time from one point up to another, in columns of a width from a millisecond to a day, at most 256. Counts of the same column and
// kind are added up. Requests have no duration. It fails with ErrInvalid.
func FromCounts(from, to time.Time, width time.Duration, counts []Count) (*Recording, error) {
	if width < minColumn || width > maxWidth {
		return nil, invalid.New(ErrInvalid, "width", width.String(), "a millisecond to a day")
	}
	r := &Recording{columns: columns{width: width}, first: wall(from), last: wall(to)}
	if first, last := time.Unix(0, math.MinInt64), time.Unix(0, math.MaxInt64); !from.Before(to) || from.Before(first) || to.After(last) {
		return nil, invalid.New(ErrInvalid, "to", to.String(), fmt.Sprintf("after %v, both between 1678 and 2262", from))
	}
	if n := r.columns.id(to.Add(-1)) - r.columns.id(from) + 1; n > mostColumns {
		return nil, invalid.New(ErrInvalid, "width", width.String(), fmt.Sprintf("at most %d columns; these are %d", mostColumns, n))
	}
	rnd := rand.New(rand.NewPCG(1, 3)) // the same counts give the same recording
	for i, c := range counts {
		name := fmt.Sprintf("counts[%d].", i)
		k, ok := map[Metric]kind{Reads: reads, Writes: writes, Failures: failures}[c.Metric]
		switch {
		case !ok:
			return nil, invalid.New(ErrInvalid, name+"Metric", c.Metric.String(), "Reads, Writes or Failures")
		case c.At.Before(from) || !c.At.Before(to):
			return nil, invalid.New(ErrInvalid, name+"At", c.At.String(), fmt.Sprintf("from %v to before %v", from, to))
		case c.Rows < uint64(len(c.Keys)):
			return nil, invalid.New(ErrInvalid, name+"Keys", fmt.Sprintf("%d keys", len(c.Keys)), fmt.Sprintf("at most %d, the number of rows", c.Rows))
		case c.Rows == 0:
			continue
		case len(c.Keys) == 0:
			return nil, invalid.New(ErrInvalid, name+"Keys", "empty", "at least one key")
		}
		o := cell{rows: c.Rows, bytes: c.Bytes}
		size := uint32(min(c.Bytes/c.Rows, math.MaxUint32))
		// Rows were sampled with a chance near 1 in 1<<shift, by which cells are merged.
		o.shift = min(uint8(bits.Len64(c.Rows/uint64(len(c.Keys))))-1, maxShift)
		for _, key := range c.Keys {
			o.keep(row{key, size, 0})
		}
		o.largest = row{key: cut(c.Keys[0]), bytes: size}.clone()
		for len(o.samples) > maxSamples {
			o.thin(rnd)
		}
		r.columns.find(r.columns.id(c.At)).cells[k].join(&o, rnd)
	}
	return r, nil
}
