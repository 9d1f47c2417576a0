package rollup

import (
	"math"
	"math/big"
	"math/bits"
	"time"

	"github.com/tidemark-go/tidemark/internal/inside"
	"github.com/tidemark-go/tidemark/internal/sketch"
	"github.com/tidemark-go/tidemark/internal/store/catalog"
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

// number is a whole number of a measure in a bucket, and the column that stores it.
type number struct {
	keeps  window.Aggregates // a measure with one of them has the number
	family string            // the ending of the family's name
	prefix string            // of the column; the measure's name follows
	of     func(*sums) *int64
	// stands reports whether a bucket with numbers stores it. What follows from other numbers is not stored. Nil stands
	// for each such bucket. One number of each aggregate is stored even if it is 0: growth looks for it.
	stands func(*sums) bool
}

// numbers are all of them, but for the count.
var numbers = [...]number{
	{window.Ends, catalog.SumEnding, "f.", func(s *sums) *int64 { return &s.first }, nil},
	{window.Ends, catalog.SumEnding, "F.", func(s *sums) *int64 { return &s.firstAt }, nil},
	{window.Ends, catalog.SumEnding, "l.", func(s *sums) *int64 { return &s.last }, several},
	{window.Ends, catalog.SumEnding, "L.", func(s *sums) *int64 { return &s.lastAt }, several},
	{window.Increase, catalog.SumEnding, "i.", func(s *sums) *int64 { return &s.increase }, wasReset},
	{window.Increase, catalog.SumEnding, "r.", func(s *sums) *int64 { return &s.resets }, wasReset},
	{window.StdDev, catalog.SumEnding, "q.", func(s *sums) *int64 { return &s.squares }, nil},
	{window.StdDev, catalog.SumEnding, "Q.", func(s *sums) *int64 { return &s.squaresHigh }, func(s *sums) bool { return s.squaresHigh != 0 }},
	{window.Integral, catalog.SumEnding, "a.", func(s *sums) *int64 { return &s.area }, several},
	{window.Integral, catalog.SumEnding, prefixCovered, func(s *sums) *int64 { return &s.covered }, several},
	{window.Sum, catalog.SumEnding, "s.", func(s *sums) *int64 { return &s.sum }, nil},
	{window.Min, catalog.MinEnding, "", func(s *sums) *int64 { return &s.min }, nil},
	{window.Max, catalog.MaxEnding, "", func(s *sums) *int64 { return &s.max }, nil},
}

// prefixCovered is for measures with a MaxGap. Without one, the time from the first to the last number is covered.
const prefixCovered = "v."

func several(s *sums) bool  { return s.count > 1 }
func wasReset(s *sums) bool { return s.resets != 0 }

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

// follow returns the function that sets what is not stored of a measure because it follows from other cells.
func follow[T any](m *Measure[T]) func(*sums) {
	return func(s *sums) {
		if s.count == 1 {
			s.last, s.lastAt = s.first, s.firstAt
		}
		if s.resets == 0 {
			s.increase = s.last - s.first
		}
		if m.MaxGap == 0 {
			s.covered = s.lastAt - s.firstAt
		}
		s.missing = m.missing(s)
	}
}

// missing returns what a stored bucket lacks because it was stored before the measure kept it.
func (m *Measure[T]) missing(s *sums) (lacks window.Aggregates) {
	always := window.Quantiles // stored of each bucket with numbers, and looked for
	switch {
	case m.Added && s.seen == 0:
		return m.Aggregates | window.Count // each measure has a count
	case s.count == 0:
		return 0
	case m.Added:
		for _, n := range numbers {
			if n.stands == nil {
				always |= n.keeps
			}
		}
	}
	lacks = m.Aggregates & always &^ s.seen
	if lacks&window.Ends != 0 {
		lacks |= m.Aggregates & joinedAggregates
	}
	return lacks
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
