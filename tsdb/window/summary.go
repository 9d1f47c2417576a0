package window

import (
	"encoding/json"
	"math"
)

// Summary holds the aggregates of one measure in one bucket. Without numbers, Count and Sum are 0 and the others are
// NaN, unless the gap was filled. Aggregates that a rollup does not keep are NaN, too. In JSON, a number that is not
// finite is null.
type Summary struct {
	// Name is the measure's name.
	Name string
	// Count is how many points of the bucket have a number for the measure.
	Count int64
	// Sum is correct to about the last bit, even for many numbers (compensated summation). Beyond the range of
	// float64 it is infinite. It is 0 in a filled gap.
	Sum float64
	// Mean is Sum divided by Count, and within Min and Max.
	Mean float64
	// Min and Max are the smallest and the largest number.
	Min, Max float64
	// First and Last are the oldest and the newest number.
	First, Last float64
	// Filled says that Mean, Min, Max, First and Last fill a gap: nothing was measured.
	Filled bool
	// Overflow says that the sum of so many numbers may have exceeded 64 bits, so Sum and Mean may be wrong. Only
	// package rollup sets it.
	Overflow bool
	// NoEnds says that First and Last are never known: they are NaN, and absent in JSON. Only package rollup sets it.
	NoEnds bool
}

// empty returns the summary of no numbers.
func empty(name string) Summary {
	nan := math.NaN()
	return Summary{Name: name, Mean: nan, Min: nan, Max: nan, First: nan, Last: nan}
}

// ends are the numbers of a summary that a rollup does not know.
type ends struct {
	First *float64 `json:"first"`
	Last  *float64 `json:"last"`
}

// MarshalJSON implements json.Marshaler. The JSON has no name: the enclosing object has it as a key.
func (s Summary) MarshalJSON() ([]byte, error) {
	var known *ends // nil: absent in JSON
	if !s.NoEnds {
		known = &ends{finite(s.First), finite(s.Last)}
	}
	return json.Marshal(struct {
		Count int64    `json:"count"`
		Sum   *float64 `json:"sum"`
		Mean  *float64 `json:"mean"`
		Min   *float64 `json:"min"`
		Max   *float64 `json:"max"`
		*ends
		Filled   bool `json:"filled,omitempty"`
		Overflow bool `json:"overflow,omitempty"`
	}{s.Count, finite(s.Sum), finite(s.Mean), finite(s.Min), finite(s.Max), known, s.Filled, s.Overflow})
}

// finite returns nil for a number that JSON cannot represent.
func finite(x float64) *float64 {
	if !isFinite(x) {
		return nil
	}
	return &x
}

func isFinite(x float64) bool { return x-x == 0 }

// accumulator aggregates numbers in the order of the sequence.
type accumulator struct {
	count      int64
	sum, lost  float64
	min, max   float64
	head, tail float64 // the first and the last number of the sequence
}

// add adds a finite number. It is Neumaier's sum: it keeps the rounding error of each addition separately.
func (a *accumulator) add(x float64) {
	if a.count == 0 {
		*a = accumulator{count: 1, sum: x, min: x, max: x, head: x, tail: x}
		return
	}
	a.count++
	a.tail = x
	if x < a.min {
		a.min = x
	}
	if x > a.max {
		a.max = x
	}
	sum := a.sum + x
	if math.Abs(a.sum) >= math.Abs(x) {
		a.lost += (a.sum - sum) + x
	} else {
		a.lost += (x - sum) + a.sum
	}
	a.sum = sum
}

// total returns the sum.
func (a *accumulator) total() float64 {
	if !isFinite(a.sum) {
		return a.sum // the rounding error is NaN then
	}
	return a.sum + a.lost
}

// summary returns the aggregates, and resets the accumulator.
func (a *accumulator) summary(name string, oldestFirst bool) Summary {
	defer func() { *a = accumulator{} }()
	if a.count == 0 {
		return empty(name)
	}
	s := Summary{Name: name, Count: a.count, Sum: a.total(), Min: a.min, Max: a.max, First: a.head, Last: a.tail}
	s.Mean = s.Sum / float64(s.Count)
	if isFinite(s.Mean) {
		s.Mean = min(max(s.Mean, s.Min), s.Max) // rounding must not take it past them
	}
	if !oldestFirst {
		s.First, s.Last = s.Last, s.First
	}
	return s
}
