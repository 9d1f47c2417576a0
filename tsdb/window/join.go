package window

import (
	"math"
	"time"

	"github.com/tidemark-go/tidemark/internal/instant"
)

// counted returns how much a counter counted from one number to the next, also in units, and whether it was reset.
func (r *rule) counted(older, newer reading) (by float64, units decimal, reset bool) {
	by, units = newer.x-older.x, newer.units.sub(older.units)
	if !newer.less(&older) {
		return by, units, false
	}
	fall := -by
	if older.exact && newer.exact {
		fall = -units.Float64()
	}
	if fall <= r.MaxDip {
		return by, units, false
	}
	return newer.x, newer.units, true
}

// connected reports whether the time between two adjacent numbers counts for the Integral: with Hold at least its
// beginning, else all of it if it is short enough.
func (r *rule) connected(older, newer reading) bool {
	return r.Hold || r.MaxGap == 0 || newer.t.Sub(older.t) <= r.MaxGap
}

// until returns how long a state or a number of a time lasts, up to the next one: until its time, but no longer than
// MaxGap.
func (r *rule) until(t, next time.Time) time.Time {
	if r.MaxGap > 0 && next.After(t.Add(r.MaxGap)) {
		return t.Add(r.MaxGap)
	}
	return next
}

// area returns the integral between two adjacent numbers, from one time to another, both of them between the numbers.
func (r *rule) area(older, newer reading, from, to time.Time) float64 {
	mean := older.x
	if r.Linear {
		width := instant.Seconds(older.t, newer.t)
		if width == 0 {
			return 0
		}
		at := (instant.Seconds(older.t, from) + instant.Seconds(older.t, to)) / 2 / width // the middle
		mean = older.x*(1-at) + newer.x*at
	}
	return mean * instant.Seconds(from, to)
}

// first and last return the ends of a summary with numbers.
func (s *Summary) first() reading {
	p := reading{t: s.FirstTime, x: s.First}
	if s.exact != nil {
		p.exact, p.units = true, s.exact.First
	}
	return p
}

func (s *Summary) last() reading {
	p := reading{t: s.LastTime, x: s.Last}
	if s.exact != nil {
		p.exact, p.units = true, s.exact.Last
	}
	return p
}

// setDelta sets what follows from the number from which the summary counts.
func (s *Summary) setDelta(since reading) {
	if !s.Aggregates.any(Delta) {
		return
	}
	s.Delta = s.Last - since.x
	if s.exact != nil {
		s.exact.Delta = s.exact.Last.sub(since.units)
		s.Delta = s.exact.Delta.Float64()
	}
}

// setRates sets what follows from the increase and from the integral.
func (s *Summary) setRates() {
	if s.Aggregates.any(Increase) {
		if s.exact != nil {
			s.Increase = s.exact.Increase.Float64()
		}
		s.Rate = math.NaN()
		if s.LastTime.After(s.Since) {
			s.Rate = s.Increase / instant.Seconds(s.Since, s.LastTime)
		}
	}
	if s.Aggregates.any(Integral) && s.Covered != (Span{}) {
		s.TimeMean = s.Integral / s.Covered.Seconds()
	}
}

// settle sets what follows from the numbers of a bucket alone.
func (s *Summary) settle() {
	if s.Aggregates.any(Delta | Increase) {
		s.Since = s.FirstTime
	}
	s.setDelta(s.first())
	s.setRates()
}

// follow adds the step from the last number before a bucket to its summary.
func (s *Summary) follow(r *rule, older reading) {
	if !s.Aggregates.any(Delta | Increase) {
		return
	}
	s.Since = older.t
	if !older.exact {
		s.exact = nil
	}
	s.setDelta(older)
	if s.Aggregates.any(Increase) {
		by, units, reset := r.counted(older, s.first())
		s.Increase += by
		if s.exact != nil {
			s.exact.Increase = s.exact.Increase.add(units)
		}
		if reset {
			s.Resets++
		}
	}
	s.setRates()
}

// integrate adds to a summary the integral from one time to another.
func (s *Summary) integrate(area float64, from, to time.Time) {
	if !from.Before(to) || !s.Aggregates.any(Integral) {
		return
	}
	s.Integral += area
	s.Covered = s.Covered.add(spanOf(from, to))
	s.setRates()
}

// cover adds to a summary the integral between two adjacent numbers in a span of time.
func (s *Summary) cover(r *rule, older, newer reading, from, to time.Time) {
	if from.Before(older.t) {
		from = older.t
	}
	if to.After(newer.t) {
		to = newer.t
	}
	s.integrate(r.area(older, newer, from, to), from, to)
}
