package rollup

import (
	"math"
	"math/bits"
	"time"

	"github.com/tidemark-go/tidemark/tsdb/window"
)

// sums are the aggregates of one measure, in multiples of the measure's unit. Without numbers it is zero.
type sums struct{ count, sum, min, max int64 }

func (s *sums) add(x int64) { s.merge(sums{1, x, x, x}) }

func (s *sums) merge(o sums) {
	switch {
	case o.count == 0:
		return
	case s.count == 0:
		*s = o
		return
	}
	s.count += o.count
	s.sum += o.sum
	s.min, s.max = min(s.min, o.min), max(s.max, o.max)
}

// bucket holds the aggregates of one bucket. Its start is in milliseconds; the bucket that contains 1970-01-01 has
// start 0.
type bucket struct {
	start  int64
	points int64
	bad    int64 // points that could not be decoded
	values []sums
}

func (b *bucket) empty() bool { return b.points == 0 && b.bad == 0 }

func (b *bucket) merge(o bucket) {
	b.points += o.points
	b.bad += o.bad
	for i := range b.values {
		b.values[i].merge(o.values[i])
	}
}

// add adds a value to the bucket.
func (r *Rollup[T]) add(b *bucket, v T) {
	b.points++
	for i := range r.measures {
		if x, ok := r.measures[i].scaled(v); ok {
			b.values[i].add(x)
		}
	}
}

// public converts a bucket to the public type.
func (r *Rollup[T]) public(b *bucket, now int64) window.Bucket {
	start, end := r.grid.Bucket(time.UnixMilli(b.start))
	out := window.Bucket{
		Start:  start,
		End:    end,
		Points: b.points,
		Bad:    b.bad,
		Open:   end.UnixMilli()+r.entry.Late > now,
		Values: make([]window.Summary, len(r.measures)),
	}
	for i := range r.measures {
		out.Values[i] = r.measures[i].summary(b.values[i])
	}
	return out
}

// summary converts sums to the public type. Aggregates that are not kept are NaN.
func (m *Measure[T]) summary(s sums) window.Summary {
	nan := math.NaN()
	out := window.Summary{Name: m.Name, Aggregates: m.Aggregates, Count: s.count, Mean: nan, Min: nan, Max: nan, First: nan, Last: nan}
	unit := math.Pow10(m.Decimals)
	if m.Aggregates&window.Sum == 0 {
		out.Sum = nan
	}
	if s.count == 0 {
		return out
	}
	if m.Aggregates&window.Sum != 0 {
		out.Sum = float64(s.sum) / unit
		out.Mean = float64(s.sum) / float64(s.count) / unit
		out.Overflow = m.mayOverflow(s.count)
	}
	if m.Aggregates&window.Min != 0 {
		out.Min = float64(s.min) / unit
	}
	if m.Aggregates&window.Max != 0 {
		out.Max = float64(s.max) / unit
	}
	return out
}

// mayOverflow reports whether a sum of count numbers may exceed 64 bits.
func (m *Measure[T]) mayOverflow(count int64) bool {
	high, low := bits.Mul64(uint64(count), uint64(math.Ceil(m.Max*math.Pow10(m.Decimals))))
	return high > 0 || low > math.MaxInt64
}
