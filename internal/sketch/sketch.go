// Package sketch counts numbers in bins, for percentiles and histograms.
package sketch

import (
	"math"
	"slices"
	"strconv"

	"github.com/tidemark-go/tidemark/internal/invalid"
)

// Error is the greatest relative error of a [Sketch]: 1/128, which is 0.8 percent.
const Error = 1.0 / 128

// Sketch counts numbers in bins, to answer which number a share of them does not exceed. Sketches merge without loss:
// the sketch of a day equals the merged sketches of its hours, in any order. The zero value is an empty sketch.
//
// Each power of two has 64 bins of equal width, so the [Middle] of a bin is off by at most [Error] times a number. Zero
// is a bin of its own; numbers nearer to it than 2^-1022 count as zero. Negative numbers have bins like positive ones.
//
// A sketch takes 16 bytes for each bin that has numbers: about 3 KB if they range from 1 to 10, 7 KB from 1 to 100, and
// never more than some 5 MB. Add takes some 50 ns. Methods that do not change the sketch are safe for concurrent use.
type Sketch struct {
	bins  []bin // in ascending order of keys
	count int64
	last  int // index of the bin of the last Add
}

// bin counts the numbers that share a key.
type bin struct {
	key int32
	n   int64
}

// keyShift leaves the exponent and the 6 highest bits of the fraction of a float64.
const (
	keyShift = 52 - 6
	leastKey = 1 << 6       // of a magnitude: 2^-1022
	mostKey  = 0x7ff<<6 - 1 // of the largest float64
	maxBins  = 2*(mostKey-leastKey+1) + 1
)

// keyOf returns the key of a finite number's bin. Keys have the order of the numbers.
func keyOf(x float64) int32 {
	key := int32(math.Float64bits(math.Abs(x)) >> keyShift)
	switch {
	case key < leastKey:
		return 0
	case x < 0:
		return -key
	}
	return key
}

// Middle returns the middle of a bin.
func Middle(key int32) float64 {
	switch {
	case key == 0:
		return 0
	case key < 0:
		return -Middle(-key)
	}
	return math.Float64frombits(uint64(key)<<keyShift | 1<<(keyShift-1))
}

// Add adds a number. A NaN or an infinity is not added.
func (s *Sketch) Add(x float64) {
	if s == nil || !isFinite(x) {
		return
	}
	key := keyOf(x)
	if s.last >= len(s.bins) || s.bins[s.last].key != key {
		i, found := slices.BinarySearchFunc(s.bins, key, func(b bin, key int32) int { return int(b.key - key) })
		if !found {
			s.bins = slices.Insert(s.bins, i, bin{key: key})
		}
		s.last = i
	}
	s.bins[s.last].n = addCounts(s.bins[s.last].n, 1)
	s.count = addCounts(s.count, 1)
}

// Merge adds the numbers of another sketch, which stays as it is. It costs time in proportion to the bins of both.
func (s *Sketch) Merge(o *Sketch) {
	if s == nil || o == nil {
		return
	}
	fresh, i := 0, 0 // bins that only o has
	for _, b := range o.bins {
		for i < len(s.bins) && s.bins[i].key < b.key {
			i++
		}
		if i == len(s.bins) || s.bins[i].key != b.key {
			fresh++
		}
	}
	// From the last bin on, each bin moves at most once.
	i = len(s.bins) - 1
	s.bins = slices.Grow(s.bins, fresh)[:len(s.bins)+fresh]
	to := len(s.bins) - 1
	for _, b := range slices.Backward(o.bins) {
		for ; i >= 0 && s.bins[i].key > b.key; i, to = i-1, to-1 {
			s.bins[to] = s.bins[i]
		}
		if i >= 0 && s.bins[i].key == b.key {
			b.n = addCounts(s.bins[i].n, b.n)
			i--
		}
		s.bins[to] = b
		to--
	}
	s.count = addCounts(s.count, o.count)
}

// addCounts returns a+b, or the largest int64 if that is more.
func addCounts(a, b int64) int64 {
	if sum := a + b; sum >= 0 {
		return sum
	}
	return math.MaxInt64
}

// Count returns how many numbers the sketch has.
func (s *Sketch) Count() int64 {
	if s == nil {
		return 0
	}
	return s.count
}

// At returns the key of the bin with the number that a share q of the numbers does not exceed, and the number's rank:
// At(0.5) is the median, At(0.95) the 95th percentile. The rank is q times [Sketch.Count], rounded up, counted from the
// smallest; it is never between two numbers. Without numbers, and for a q that is not in 0 to 1, ok is false.
func (s *Sketch) At(q float64) (key int32, rank int64, ok bool) {
	if s.Count() == 0 || !(q >= 0 && q <= 1) {
		return 0, 0, false
	}
	// 0.07 of 100 numbers are 7 of them, and not the 7.000000000000001 of the product. Its error grows with it: q and
	// the product are each rounded to 53 bits.
	product := q * float64(s.count)
	exact := math.Ceil(product - product*0x1p-50)
	rank = max(1, s.count)
	if exact < float64(s.count) {
		rank = max(1, int64(exact))
	}
	seen := int64(0)
	for _, b := range s.bins {
		if seen = addCounts(seen, b.n); seen >= rank {
			return b.key, rank, true
		}
	}
	return s.bins[len(s.bins)-1].key, rank, true
}

// Histogram returns how many numbers there are below the first bound, then from each bound to the next one, without
// it, and last from the last bound on: one more than there are bounds. Bounds are ascending. A number that differs
// from a bound by at most [Error] times the bound may be counted on its other side. For bounds above 0 with up to
// seven significant binary digits, such as the whole numbers up to 128, the counts are exact. The error matches
// invalid.ErrInput.
func (s *Sketch) Histogram(bounds ...float64) ([]int64, error) {
	for i, b := range bounds {
		if math.IsNaN(b) || i > 0 && b <= bounds[i-1] {
			return nil, invalid.New(invalid.ErrInput, "bound "+strconv.Itoa(i), strconv.FormatFloat(b, 'g', -1, 64), "a number above the bound before it")
		}
	}
	counts := make([]int64, len(bounds)+1)
	if s == nil {
		return counts, nil
	}
	i := 0
	for _, b := range s.bins {
		for x := Middle(b.key); i < len(bounds) && x >= bounds[i]; {
			i++
		}
		counts[i] = addCounts(counts[i], b.n)
	}
	return counts, nil
}

// MiddleOfUnits returns the middle of the multiples of 10^-decimals in a bin. If there is only one, it is that number.
func MiddleOfUnits(key int32, decimals uint8) float64 {
	if key < 0 {
		return -MiddleOfUnits(-key, decimals)
	}
	unit := math.Pow10(int(decimals))
	first, end := unitsFrom(key, unit), unitsFrom(key+1, unit)
	if key == 0 || !(first < end && end < 1<<52) {
		return Middle(key)
	}
	return (first + end - 1) / 2 / unit
}

// unitsFrom returns the first multiple of 1/unit in a bin or after it.
func unitsFrom(key int32, unit float64) float64 {
	edge := math.Float64frombits(uint64(key) << keyShift)
	n := math.Ceil(edge * unit) // rounded, so it may be one too many or too few
	switch {
	case n/unit < edge:
		n++
	case (n-1)/unit >= edge:
		n--
	}
	return n
}

func isFinite(x float64) bool { return x-x == 0 }
