package window

import (
	"encoding/json"
	"math"
	"time"

	"github.com/tidemark-go/tidemark/internal/instant"
	"github.com/tidemark-go/tidemark/internal/sketch"
)

// Summary holds the aggregates of one measure in one bucket. Aggregates has those that were computed; the others are
// NaN, 0 or the zero time. Without numbers, Count, Sum, Delta, Increase and Integral are 0 and the others NaN or zero,
// unless the gap was filled. In JSON, only the computed aggregates are present, and a number that is not finite is
// null; for Quantiles there are p50, p95 and p99.
type Summary struct {
	// Name is the measure's name.
	Name string
	// Kind is the measure's kind.
	Kind Kind
	// Aggregates are those that were computed. Zero stands for Basic|Ends.
	Aggregates Aggregates
	// Count is how many points of the bucket have a number for the measure.
	Count int64
	// Sum is correct to about the last bit, even for many numbers (compensated summation). It is infinite if it, or the
	// sum of some of the numbers, is beyond the range of float64. It is 0 in a filled gap.
	Sum float64
	// Mean is Sum divided by Count; if it is finite, it is within Min and Max.
	Mean float64
	// Min and Max are the smallest and the largest number.
	Min, Max float64
	// First and Last are the oldest and the newest number, and FirstTime and LastTime the times of their points. The
	// times are zero in a gap.
	First, Last         float64
	FirstTime, LastTime time.Time
	// StdDev is the sample standard deviation: it divides by Count-1. It is NaN for fewer than two numbers.
	StdDev float64
	// Since is the time from which Delta and Increase count: that of the last number before the bucket. So the step
	// from that number belongs to the bucket, and the buckets of a day add up to the day. If there is no earlier
	// number, Since is FirstTime.
	Since time.Time
	// Delta is how much a gauge changed from Since to LastTime.
	Delta float64
	// Increase is how much a counter counted from Since to LastTime, and Resets how often it was reset in that time.
	// After a reset the counter has counted from zero: what it counted between the last number and the reset is lost. A
	// dip within Measure.MaxDip is no reset, and counts as a negative step.
	Increase float64
	Resets   int64
	// Rate is Increase per second from Since to LastTime. It is NaN if no time passed.
	Rate float64
	// Integral is the sum of each number times the seconds for which it was valid, within the bucket: the integral of a
	// load in kW, divided by 3600, is the energy in kWh. A number is valid until the next one, or changes linearly
	// until it (Measure.Linear). Nothing is known before the first number, after the last one, and in between if that
	// takes longer than Measure.MaxGap. With Measure.Hold, each number is valid for MaxGap in any case, also the last
	// one. The numbers before and after the bucket count as well.
	Integral float64
	// Covered is how much of the bucket the Integral covers.
	Covered Span
	// TimeMean is the time-weighted mean: Integral divided by the seconds of Covered.
	TimeMean float64
	// Missing are aggregates that the rollup keeps and this bucket does not have, because it was stored before they
	// were added to the rollup. They are NaN or 0, and not among Aggregates. If Count is one of them, nothing is known
	// of the measure in this bucket. Rebuild of the rollup's reader computes them. Only package rollup sets it.
	Missing Aggregates
	// States says how long each state lasted, if the Aggregates have Durations. Else it is nil.
	States *States
	// Filled says that Mean, Min, Max, First and Last fill a gap: nothing was measured.
	Filled bool
	// Overflow says that the sum or the increase may exceed 64 bits. Then Sum, Mean, Increase and Rate may be wrong,
	// and StdDev is NaN. Only package rollup sets it.
	Overflow bool

	sketch *sketch.Sketch // of the numbers, if Quantiles are among the Aggregates
	exact  *exactNumbers  // nil if the measure is not exact
}

// exactNumbers holds aggregates of whole or fixed-decimal numbers. Those that were not computed are 0.
type exactNumbers struct {
	Sum, Min, Max, First, Last, Delta, Increase decimal
}

// Exact holds aggregates without rounding, with all their digits: "-0.25". What was not computed is "".
type Exact struct {
	Sum, Min, Max, First, Last, Delta, Increase json.Number
}

// Exact returns the aggregates without rounding if the measure has whole or fixed-decimal numbers (Measure.Int,
// integers of Measure.Value, and each measure of a rollup). Else all are "". In a gap that Previous fills, it has
// Min, Max, First and Last.
func (s Summary) Exact() Exact {
	if s.exact == nil {
		return Exact{}
	}
	digits := func(of Aggregates, x float64, d decimal) json.Number {
		if !s.kept().any(of) || !isFinite(x) {
			return ""
		}
		return json.Number(d.String())
	}
	return Exact{
		Sum: digits(Sum, s.Sum, s.exact.Sum), Min: digits(Min, s.Min, s.exact.Min), Max: digits(Max, s.Max, s.exact.Max),
		First: digits(Ends, s.First, s.exact.First), Last: digits(Ends, s.Last, s.exact.Last),
		Delta: digits(Delta, s.Delta, s.exact.Delta), Increase: digits(Increase, s.Increase, s.exact.Increase),
	}
}

// kept returns the aggregates that the summary has.
func (s *Summary) kept() Aggregates {
	if s.Aggregates == 0 && s.Missing == 0 {
		return Basic | Ends
	}
	return s.Aggregates
}

// Quantile returns the number that a share q of the bucket's numbers does not exceed: Quantile(0.5) is the median,
// Quantile(0.95) the 95th percentile. That is the number with rank q times Count, rounded up, counted from the
// smallest; it is never between two numbers. The result differs from it by at most 0.8 percent of that number. It needs
// [Quantiles] among the Aggregates; without them, without numbers, in a filled gap and for a q that is not in 0 to 1 it
// is NaN. The smallest and the largest number are exact, and so are small numbers of an exact measure: those up to 64
// times its unit.
func (s Summary) Quantile(q float64) float64 {
	key, rank, ok := s.sketch.At(q)
	switch {
	case !ok:
		return math.NaN()
	case rank == 1 && isFinite(s.Min):
		return s.Min
	case rank == s.sketch.Count() && isFinite(s.Max):
		return s.Max
	}
	x := sketch.Middle(key)
	if s.exact != nil {
		x = sketch.MiddleOfUnits(key, s.exact.Min.decimals)
	}
	if isFinite(s.Min) && isFinite(s.Max) {
		x = min(max(x, s.Min), s.Max)
	}
	return x
}

// Histogram returns how many numbers are below the first bound, how many from each bound to the next one, without it,
// and last from the last bound on: one more than there are bounds. It needs [Quantiles] among the Aggregates. Bounds
// are ascending. A number that differs from a bound by at most 0.8 percent of the bound may be counted on its other
// side. For bounds above 0 with up to seven significant binary digits, such as the whole numbers up to 128, the
// counts are exact. The error matches tsdb.ErrInvalid.
func (s Summary) Histogram(bounds ...float64) ([]int64, error) { return s.sketch.Histogram(bounds...) }

// empty returns the summary of no numbers.
func (r *rule) empty(name string) Summary {
	nan := math.NaN()
	zero := func(a Aggregates) float64 {
		if r.Aggregates.any(a) {
			return 0
		}
		return nan
	}
	s := Summary{
		Name: name, Kind: r.Kind, Aggregates: r.Aggregates, Sum: zero(Sum), Mean: nan, Min: nan, Max: nan, First: nan, Last: nan, StdDev: nan,
		Delta: zero(Delta), Increase: zero(Increase), Rate: nan, Integral: zero(Integral), TimeMean: nan,
	}
	if r.Aggregates == 0 {
		s.Sum = 0
	}
	if r.Aggregates.any(Durations) {
		s.States = &States{}
	}
	return s
}

// MarshalJSON implements json.Marshaler. The JSON has no name: the enclosing object has it as a key.
func (s Summary) MarshalJSON() ([]byte, error) {
	kept, count := s.kept(), &s.Count
	if s.Missing.any(Count) {
		count = nil
	}
	number := func(a Aggregates, x float64, digits json.Number) json.RawMessage {
		switch {
		case !kept.any(a):
			return nil
		case digits != "":
			return json.RawMessage(digits)
		case !isFinite(x):
			return json.RawMessage("null")
		}
		text, _ := json.Marshal(x) // has no errors
		return text
	}
	exact := s.Exact()
	if s.Overflow {
		exact.Sum = ""
	}
	out := struct {
		Count     *int64          `json:"count,omitempty"`
		Sum       json.RawMessage `json:"sum,omitempty"`
		Mean      json.RawMessage `json:"mean,omitempty"`
		Min       json.RawMessage `json:"min,omitempty"`
		Max       json.RawMessage `json:"max,omitempty"`
		First     json.RawMessage `json:"first,omitempty"`
		FirstTime instant.Time    `json:"first_time,omitzero"`
		Last      json.RawMessage `json:"last,omitempty"`
		LastTime  instant.Time    `json:"last_time,omitzero"`
		StdDev    json.RawMessage `json:"stddev,omitempty"`
		Delta     json.RawMessage `json:"delta,omitempty"`
		Increase  json.RawMessage `json:"increase,omitempty"`
		Rate      json.RawMessage `json:"rate,omitempty"`
		Resets    *int64          `json:"resets,omitempty"`
		Since     instant.Time    `json:"since,omitzero"`
		Integral  json.RawMessage `json:"integral,omitempty"`
		TimeMean  json.RawMessage `json:"time_mean,omitempty"`
		Covered   json.RawMessage `json:"covered_s,omitempty"`
		P50       json.RawMessage `json:"p50,omitempty"`
		P95       json.RawMessage `json:"p95,omitempty"`
		P99       json.RawMessage `json:"p99,omitempty"`
		States    *States         `json:"states,omitempty"`
		Filled    bool            `json:"filled,omitempty"`
		Overflow  bool            `json:"overflow,omitempty"`
		Missing   []string        `json:"missing,omitempty"`
	}{
		Count: count, Sum: number(Sum, s.Sum, exact.Sum), Mean: number(Sum, s.Mean, ""),
		Min: number(Min, s.Min, exact.Min), Max: number(Max, s.Max, exact.Max),
		First: number(Ends, s.First, exact.First), Last: number(Ends, s.Last, exact.Last),
		StdDev: number(StdDev, s.StdDev, ""), Delta: number(Delta, s.Delta, exact.Delta),
		Increase: number(Increase, s.Increase, exact.Increase), Rate: number(Increase, s.Rate, ""), Since: instant.Time{Time: s.Since},
		Integral: number(Integral, s.Integral, ""), TimeMean: number(Integral, s.TimeMean, ""), Covered: number(Integral, s.Covered.Seconds(), ""),
		P50: number(Quantiles, s.Quantile(0.5), ""), P95: number(Quantiles, s.Quantile(0.95), ""), P99: number(Quantiles, s.Quantile(0.99), ""),
		States: s.States, Filled: s.Filled, Overflow: s.Overflow, Missing: s.Missing.names(),
	}
	if kept.any(Ends) {
		out.FirstTime.Time, out.LastTime.Time = s.FirstTime, s.LastTime
	}
	if kept.any(Increase) {
		out.Resets = &s.Resets
	}
	return json.Marshal(out)
}

func isFinite(x float64) bool { return x-x == 0 }
