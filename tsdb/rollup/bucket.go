package rollup

import (
	"math"
	"math/big"
	"math/bits"
	"slices"
	"time"

	"github.com/tidemark-go/tidemark/internal/inside"
	"github.com/tidemark-go/tidemark/internal/rollupadd"
	"github.com/tidemark-go/tidemark/internal/sketch"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

// sums are the aggregates of one measure inside a bucket, in multiples of the measure's unit. Without numbers it is
// zero. What a measure does not keep is not stored.
type sums struct {
	count, sum, min, max int64
	first, last          int64
	firstAt, lastAt      int64 // when, in nanoseconds from the bucket's start
	increase, resets     int64 // from first to last
	squares, squaresHigh int64 // the sum of the squares: 128 bits
	area                 int64 // the bits of a float64: the integral from first to last, in units times seconds
	covered              int64 // the nanoseconds that area covers
	sketch               *sketch.Sketch
	encoded              []byte            // the stored sketch, until a read decodes it
	seen                 window.Aggregates // those of which a cell is stored
	missing              window.Aggregates // those that the measure keeps and the stored bucket does not have
}

// alone returns the sums of one number.
func alone(x, at int64) sums {
	size := uint64(max(x, -x))
	high, low := bits.Mul64(size, size)
	return sums{count: 1, sum: x, min: x, max: x, first: x, last: x, firstAt: at, lastAt: at, squares: int64(low), squaresHigh: int64(high)}
}

// merge adds the sums of later numbers. It is the only way by which numbers come together, so a bucket that is computed
// from finer ones has the same sums as one that is computed from points. Only the area, a float64, may differ in its
// last bits, because its parts are added in another order.
func (m *Measure[T]) merge(s *sums, o sums) {
	missing := s.missing | o.missing
	switch {
	case o.count == 0:
	case s.count == 0:
		*s = o
	default:
		m.extend(s, &o)
	}
	if s.missing = missing; missing&window.Quantiles != 0 {
		s.sketch = nil
	}
}

// extend is merge for two sums that both have numbers.
func (m *Measure[T]) extend(s, o *sums) {
	s.count += o.count
	s.sketch.Merge(o.sketch)
	s.sum += o.sum
	s.min, s.max = min(s.min, o.min), max(s.max, o.max)
	if m.has(window.StdDev) {
		low, carry := bits.Add64(uint64(s.squares), uint64(o.squares), 0)
		s.squares, s.squaresHigh = int64(low), s.squaresHigh+o.squaresHigh+int64(carry)
	}
	if !m.has(window.Ends) {
		return
	}
	if m.has(window.Increase) {
		step := o.first - s.last
		if step < 0 { // the counter was reset, and has counted from zero
			step = o.first
			s.resets++
		}
		s.increase += step + o.increase
		s.resets += o.resets
	}
	if m.has(window.Integral) {
		area := math.Float64frombits(uint64(s.area)) + math.Float64frombits(uint64(o.area))
		s.covered += o.covered
		if gap := o.firstAt - s.lastAt; m.MaxGap == 0 || gap <= int64(m.MaxGap) {
			mean := float64(s.last)
			if m.Linear {
				mean = (mean + float64(o.first)) / 2
			}
			area += mean * time.Duration(gap).Seconds()
			s.covered += gap
		}
		s.area = int64(math.Float64bits(area))
	}
	s.last, s.lastAt = o.last, o.lastAt
}

// bucket holds the aggregates of one bucket. Its start is in milliseconds; the bucket that contains 1970-01-01 has
// start 0.
type bucket struct {
	start  int64
	points int64
	bad    int64 // points that could not be decoded
	values []sums
	// changed is when the bucket changed, in milliseconds, if it changed since it was stored and cannot be computed
	// here. Its measures then miss everything, and stored is what is stored of it. It is 0 for a bucket that is known.
	changed int64
	stored  *bucket
	blind   bool // how many points it has is not known either
}

func (b *bucket) empty() bool { return b.points == 0 && b.bad == 0 && b.changed == 0 }

// asStored returns what is stored of the bucket. Merging it does not change b.
func (b *bucket) asStored() bucket {
	switch {
	case b.stored != nil:
		return *b.stored
	case b.changed != 0:
		return bucket{start: b.start, values: make([]sums, len(b.values))}
	}
	own := *b
	own.values = slices.Clone(b.values)
	for i := range own.values {
		if v := &own.values[i]; v.sketch != nil {
			v.sketch = new(sketch.Sketch)
			v.sketch.Merge(b.values[i].sketch)
		}
	}
	return own
}

// merge adds a later bucket, of this or a finer rollup.
func (r *Rollup[T]) merge(b *bucket, o bucket) {
	if b.changed != 0 || o.changed != 0 {
		stored := b.asStored()
		r.merge(&stored, o.asStored())
		b.stored, b.changed, b.blind = &stored, max(b.changed, o.changed), b.blind || o.blind
	}
	b.points += o.points
	b.bad += o.bad
	shift := (o.start - b.start) * int64(time.Millisecond)
	for i := range b.values {
		v := o.values[i]
		v.firstAt, v.lastAt = v.firstAt+shift, v.lastAt+shift
		r.measures[i].merge(&b.values[i], v)
	}
}

// add adds a point to the bucket by its numbers, one for each measure.
func (r *Rollup[T]) add(b *bucket, t time.Time, numbers []rollupadd.Number) {
	b.points++
	at := int64(t.Sub(time.UnixMilli(b.start)))
	for i := range r.measures {
		m, s := &r.measures[i], &b.values[i]
		if !numbers[i].Has {
			continue
		}
		x := numbers[i].Value
		m.merge(s, alone(x, at))
		if m.has(window.Quantiles) {
			if s.sketch == nil {
				s.sketch = new(sketch.Sketch)
			}
			s.sketch.Add(float64(x) / math.Pow10(m.Decimals))
		}
	}
}

// public converts a bucket to the public type. Its measures know only the bucket's own numbers.
func (r *Rollup[T]) public(b *bucket, now int64) window.Bucket {
	start := r.grid.Start(time.UnixMilli(b.start))
	end := r.grid.Next(start)
	out := window.Bucket{
		Start:  start,
		End:    end,
		Points: b.points,
		Bad:    b.bad,
		Open:   end.UnixMilli()+r.entry.Late > now,
		Values: make([]window.Summary, len(r.measures)),
	}
	for i := range r.measures {
		out.Values[i] = r.measures[i].summary(&b.values[i], time.UnixMilli(b.start))
	}
	if b.changed != 0 {
		stored := b.asStored()
		known := r.public(&stored, now)
		if b.blind {
			out.Points, out.Bad = 0, 0
		}
		out.Incomplete = &window.Incomplete{Changed: time.UnixMilli(min(b.changed, now)).UTC(), Points: known.Points, Bad: known.Bad, Values: known.Values}
	}
	return out
}

// summary converts sums of a bucket to the public type. Aggregates that are not kept or missing are NaN.
func (m *Measure[T]) summary(s *sums, start time.Time) window.Summary {
	if s.missing&window.Count != 0 {
		s = &sums{missing: s.missing} // what is known is only of some finer buckets
	}
	kept, unit := m.Aggregates&^s.missing, math.Pow10(m.Decimals)
	stored := inside.StoredNumbers{
		Count: s.count, Sum: s.sum, Min: s.min, Max: s.max, First: s.first, Last: s.last, Increase: s.increase, Resets: s.resets,
		FirstTime: start.Add(time.Duration(s.firstAt)).UTC(), LastTime: start.Add(time.Duration(s.lastAt)).UTC(),
		Integral: math.Float64frombits(uint64(s.area)) / unit, Covered: time.Duration(s.covered), Sketch: s.sketch,
	}
	out := inside.Of[*window.Aggregator[T]](nil).Stored(m.inWindows(kept), stored)
	out.Missing = s.missing
	out.Overflow = s.count > 0 && (kept&window.Sum != 0 && m.mayOverflow(s.count) || kept&window.Increase != 0 && m.mayOverflow(s.resets+1))
	if out.StdDev = math.NaN(); kept&window.StdDev != 0 && !out.Overflow {
		out.StdDev = s.stdDev() / unit
	}
	return out
}

// stdDev returns the sample standard deviation in units. It computes with whole numbers, so nothing cancels out.
func (s *sums) stdDev() float64 {
	if s.count < 2 {
		return math.NaN()
	}
	n, sum := big.NewInt(s.count), big.NewInt(s.sum)
	squares := new(big.Int).SetUint64(uint64(s.squaresHigh))
	squares.Lsh(squares, 64).Add(squares, new(big.Int).SetUint64(uint64(s.squares)))
	squares.Mul(squares, n).Sub(squares, sum.Mul(sum, sum))
	variance, _ := new(big.Rat).SetFrac(squares, n.Mul(n, big.NewInt(s.count-1))).Float64()
	return math.Sqrt(variance)
}

// mayOverflow reports whether a sum of count numbers may exceed 64 bits.
func (m *Measure[T]) mayOverflow(count int64) bool {
	high, low := bits.Mul64(uint64(count), uint64(math.Ceil(m.Max*math.Pow10(m.Decimals))))
	return high > 0 || low > math.MaxInt64
}
