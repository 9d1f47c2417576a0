package window

import (
	"math"
	"time"

	"github.com/tidemark-go/tidemark/internal/sketch"
)

// rule is how a measure is aggregated.
type rule struct {
	Kind       Kind
	Aggregates Aggregates
	Linear     bool
	Hold       bool
	MaxGap     time.Duration
	MaxDip     float64
}

// needsNext reports whether a bucket needs the next number for its integral.
func (r *rule) needsNext() bool { return r.Aggregates.any(Integral) && !r.Hold }

// lasts reports whether the last number of a bucket counts in later ones, up to the next number or the end of the
// interval.
func (r *rule) lasts() bool {
	return r.Aggregates.any(Durations) || r.Hold
}

// reading is a number at a time. If it is exact, units is the same number without rounding. If it is a text, x is NaN.
type reading struct {
	t     time.Time
	x     float64
	exact bool
	units decimal
	text  string
}

// compensated is Neumaier's sum: it keeps the rounding error of each addition separately.
type compensated struct{ sum, lost float64 }

func (c *compensated) add(x float64) {
	sum := c.sum + x
	if math.Abs(c.sum) >= math.Abs(x) {
		c.lost += (c.sum - sum) + x
	} else {
		c.lost += (x - sum) + c.sum
	}
	c.sum = sum
}

func (c *compensated) total() float64 {
	if !isFinite(c.sum) {
		return c.sum // the rounding error is NaN then
	}
	return c.sum + c.lost
}

// accumulator aggregates numbers in the order of the sequence.
type accumulator struct {
	count      int64
	sum        compensated
	min, max   reading
	head, tail reading // the first and the last number of the sequence
	mean, m2   float64 // of Welford's variance
	increase   compensated
	resets     int64
	area       compensated
	covered    Span
	exactSum   decimal // of units
	exactInc   decimal
	sketch     *sketch.Sketch
	rounded    bool   // one of the numbers is not exact
	states     States // its states have no names yet if they are numbers
}

// add adds a finite number.
func (a *accumulator) add(p reading, r *rule, oldestFirst bool) {
	if a.count == 0 {
		a.min, a.max, a.head = p, p, p
		a.exactSum.decimals, a.exactInc.decimals = p.units.decimals, p.units.decimals
	} else {
		if p.less(&a.min) {
			a.min = p
		}
		if a.max.less(&p) {
			a.max = p
		}
		if r.Aggregates.any(Increase | Integral | Durations) {
			older, newer := a.tail, p
			if !oldestFirst {
				older, newer = p, a.tail
			}
			a.step(older, newer, r)
		}
	}
	a.count++
	a.tail = p
	a.sum.add(p.x)
	if p.exact {
		a.exactSum = a.exactSum.add(p.units)
	} else {
		a.rounded = true
	}
	if r.Aggregates.any(StdDev) {
		d := p.x - a.mean
		a.mean += d / float64(a.count)
		a.m2 += d * (p.x - a.mean)
	}
	if r.Aggregates.any(Quantiles) {
		if a.sketch == nil {
			a.sketch = new(sketch.Sketch)
		}
		a.sketch.Add(p.x)
	}
}

// less reports whether p is less than o.
func (p *reading) less(o *reading) bool {
	return p.x < o.x || p.exact && o.exact && p.units.less(o.units)
}

// step adds what is between two adjacent numbers of a bucket.
func (a *accumulator) step(older, newer reading, r *rule) {
	if r.Aggregates.any(Increase) {
		by, units, reset := r.counted(older, newer)
		a.increase.add(by)
		a.exactInc = a.exactInc.add(units)
		if reset {
			a.resets++
		}
	}
	if r.Aggregates.any(Integral) && r.connected(older, newer) {
		until := newer.t
		if r.Hold {
			until = r.until(older.t, newer.t)
		}
		a.area.add(r.area(older, newer, older.t, until))
		a.covered = a.covered.add(spanOf(older.t, until))
	}
	if r.Aggregates.any(Durations) {
		a.states.spend(older.state(), spanOf(older.t, r.until(older.t, newer.t)))
		a.states.enter(older.state(), newer.state())
	}
}

// summary returns the aggregates. Decimals are those of whole numbers, and below 0 for all else.
func (a *accumulator) summary(name string, r *rule, decimals int, oldestFirst bool) Summary {
	s := r.empty(name)
	if a.count == 0 {
		return s
	}
	first, last := a.head, a.tail
	if !oldestFirst {
		first, last = last, first
	}
	exact := &exactNumbers{} // that nobody reads, unless the summary has it
	if !a.rounded {
		s.exact = &exactNumbers{}
		exact = s.exact
	}
	s.Count = a.count
	if r.Aggregates.any(Sum) {
		s.Sum, exact.Sum = a.sum.total(), a.exactSum
		if !a.rounded {
			s.Sum = exact.Sum.Float64()
		}
		s.Mean = s.Sum / float64(s.Count)
		if isFinite(s.Mean) {
			s.Mean = min(max(s.Mean, a.min.x), a.max.x) // rounding must not take it past them
		}
	}
	if r.Aggregates.any(Min) {
		s.Min, exact.Min = a.min.x, a.min.units
	}
	if r.Aggregates.any(Max) {
		s.Max, exact.Max = a.max.x, a.max.units
	}
	if r.Aggregates.any(Ends) {
		s.First, s.FirstTime, exact.First = first.x, first.t, first.units
		s.Last, s.LastTime, exact.Last = last.x, last.t, last.units
	}
	if r.Aggregates.any(StdDev) && a.count > 1 {
		s.StdDev = math.Sqrt(a.m2 / float64(a.count-1))
	}
	if r.Aggregates.any(Increase) {
		s.Increase, s.Resets, exact.Increase = a.increase.total(), a.resets, a.exactInc
	}
	if r.Aggregates.any(Integral) {
		s.Integral, s.Covered = a.area.total(), a.covered
	}
	s.sketch = a.sketch
	if r.Aggregates.any(Durations) {
		*s.States = a.states
		s.States.between(first.state(), last.state(), decimals)
	}
	s.settle()
	return s
}

// addNumbers adds the summary of another entity, which has numbers, to that of a group. What Integral and Durations have
// is added elsewhere, because an entity without numbers has it too.
func (s *Summary) addNumbers(o *Summary) {
	first := s.Count == 0
	if s.Aggregates.any(StdDev) {
		s.StdDev = pooled(s, o)
	}
	s.Count += o.Count
	s.Sum += o.Sum
	s.Delta += o.Delta
	s.Increase += o.Increase
	s.Resets += o.Resets
	if first || o.Min < s.Min {
		s.Min = o.Min
	}
	if first || o.Max > s.Max {
		s.Max = o.Max
	}
	if math.IsNaN(s.Rate) {
		s.Rate = o.Rate
	} else if !math.IsNaN(o.Rate) {
		s.Rate += o.Rate
	}
	if first || o.Since.Before(s.Since) {
		s.Since = o.Since
	}
	switch {
	case o.exact == nil || s.exact == nil && !first:
		s.exact = nil
	case first:
		exact := *o.exact
		s.exact = &exact
	default:
		s.addExact(o)
	}
	if s.sketch == nil {
		s.sketch = o.sketch
	} else {
		s.sketch.Merge(o.sketch)
	}
	s.Mean = s.Sum / float64(s.Count)
	if isFinite(s.Mean) && s.Min <= s.Max { // both are NaN if they were not asked for
		s.Mean = min(max(s.Mean, s.Min), s.Max)
	}
}

// addExact adds the exact numbers, and rounds the sums from them.
func (s *Summary) addExact(o *Summary) {
	if o.exact.Min.less(s.exact.Min) {
		s.exact.Min = o.exact.Min
	}
	if s.exact.Max.less(o.exact.Max) {
		s.exact.Max = o.exact.Max
	}
	sum := func(float *float64, d *decimal, by decimal) {
		*d = d.add(by)
		if isFinite(*float) {
			*float = d.Float64()
		}
	}
	sum(&s.Sum, &s.exact.Sum, o.exact.Sum)
	sum(&s.Delta, &s.exact.Delta, o.exact.Delta)
	sum(&s.Increase, &s.exact.Increase, o.exact.Increase)
}

// pooled returns the standard deviation of all numbers of two summaries, the second of which has some.
func pooled(s, o *Summary) float64 {
	if s.Count == 0 {
		return o.StdDev
	}
	squares := func(s *Summary) float64 {
		if s.Count < 2 {
			return 0
		}
		return s.StdDev * s.StdDev * float64(s.Count-1)
	}
	n, m := float64(s.Count), float64(o.Count)
	d := o.Mean - s.Mean
	return math.Sqrt((squares(s) + squares(o) + d*d*n*m/(n+m)) / (n + m - 1))
}
