package window

import (
	"encoding/json"
	"math"
)

// Summary is what the numbers of one measure in one bucket come to. Where there are none, Count and Sum are 0 and the others
// NaN, unless the gap was filled; in a rollup, so is what it does not keep. As JSON, what is not a finite number is null.
type Summary struct {
	// Name is that of the measure.
	Name string
	// Count is how many points of the bucket have a number for the measure.
	Count int64
	// Sum is correct to about the last bit however many numbers there are (compensated summation); beyond the range of
	// float64 it is infinite. It is 0 in a filled gap.
	Sum float64
	// Mean is Sum by Count, from Min to Max.
	Mean float64
	// Min and Max are the smallest and the largest number.
	Min, Max float64
	// First and Last are the oldest and the newest number.
	First, Last float64
	// Filled says that Mean, Min, Max, First and Last were put into a gap: nothing was measured.
	Filled bool
	// Overflow says that there are so many numbers that their sum may not have fit into what holds it, and that Sum and Mean
	// may be wrong. Only package rollup sets it.
	Overflow bool
	// NoEnds says that First and Last are never known here: they are NaN, and left out of the JSON. Only package rollup sets it.
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

// MarshalJSON implements json.Marshaler. The name is left to what the summary stands in.
func (s Summary) MarshalJSON() ([]byte, error) {
	var known *ends // nil is left out
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

// finite returns nil for what JSON cannot hold.
func finite(x float64) *float64 {
	if !isFinite(x) {
		return nil
	}
	return &x
}

func isFinite(x float64) bool { return x-x == 0 }

// accumulator takes numbers in the order in which they come.
type accumulator struct {
	count      int64
	sum, lost  float64
	min, max   float64
	head, tail float64 // the number that came first, and the one that came last
}

// add takes a finite number. The sum is Neumaier's: it keeps apart what each addition loses.
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
		return a.sum // what was lost is not a number then
	}
	return a.sum + a.lost
}

// summary returns what the numbers come to, and starts over.
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
