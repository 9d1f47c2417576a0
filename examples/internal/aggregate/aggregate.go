// Package aggregate has the names of what a measure has in a window of time, and the form of windows, outages and
// aligned rows in JSON and CSV. latestapi and tidectl share them.
package aggregate

import (
	"encoding/json"
	"math"
	"slices"

	"github.com/tidemark-go/tidemark/tsdb/window"
)

// Aggregate is one number of a measure in a window, or its states, and the aggregates of package window that it belongs
// to.
type Aggregate struct {
	Name string
	Kept window.Aggregates
	Of   func(*window.Summary) float64 // nil for states
	// exact returns the number without rounding. It is nil where there is only a rounded one.
	exact func(window.Exact) json.Number
}

// All are all of them. The kind of a measure decides which it has.
var All = []Aggregate{
	{"count", window.Count, func(s *window.Summary) float64 { return float64(s.Count) }, nil},
	{"sum", window.Sum, func(s *window.Summary) float64 { return s.Sum }, func(e window.Exact) json.Number { return e.Sum }},
	{"mean", window.Sum, func(s *window.Summary) float64 { return s.Mean }, nil},
	{"min", window.Min, func(s *window.Summary) float64 { return s.Min }, func(e window.Exact) json.Number { return e.Min }},
	{"max", window.Max, func(s *window.Summary) float64 { return s.Max }, func(e window.Exact) json.Number { return e.Max }},
	{"first", window.Ends, func(s *window.Summary) float64 { return s.First }, func(e window.Exact) json.Number { return e.First }},
	{"last", window.Ends, func(s *window.Summary) float64 { return s.Last }, func(e window.Exact) json.Number { return e.Last }},
	{"stddev", window.StdDev, func(s *window.Summary) float64 { return s.StdDev }, nil},
	{"delta", window.Delta, func(s *window.Summary) float64 { return s.Delta }, func(e window.Exact) json.Number { return e.Delta }},
	{"increase", window.Increase, func(s *window.Summary) float64 { return s.Increase }, func(e window.Exact) json.Number { return e.Increase }},
	{"rate", window.Increase, func(s *window.Summary) float64 { return s.Rate }, nil},
	{"resets", window.Increase, func(s *window.Summary) float64 { return float64(s.Resets) }, nil},
	{"integral", window.Integral, func(s *window.Summary) float64 { return s.Integral }, nil},
	{"time_mean", window.Integral, func(s *window.Summary) float64 { return s.TimeMean }, nil},
	{"p50", window.Quantiles, func(s *window.Summary) float64 { return s.Quantile(0.5) }, nil},
	{"p90", window.Quantiles, func(s *window.Summary) float64 { return s.Quantile(0.9) }, nil},
	{"p95", window.Quantiles, func(s *window.Summary) float64 { return s.Quantile(0.95) }, nil},
	{"p99", window.Quantiles, func(s *window.Summary) float64 { return s.Quantile(0.99) }, nil},
	{"states", window.Durations, nil, nil},
}

// Names are the names of all.
func Names() []string {
	names := make([]string, len(All))
	for i, a := range All {
		names[i] = a.Name
	}
	return names
}

// Named returns those with the given names, in the order of All, and what package window has to compute for them.
func Named(names []string) (of []Aggregate, kept window.Aggregates) {
	for _, a := range All {
		if slices.Contains(names, a.Name) {
			of = append(of, a)
			kept |= a.Kept
		}
	}
	return of, kept
}

// value returns what a summary has of the aggregate: a json.Number where it is exact and else a float64, the name of
// a state, or *window.States. It is nil if the summary has nothing: its measure does not have the aggregate, or the
// window has no number.
func (a Aggregate) value(s *window.Summary) any {
	if s.Aggregates&a.Kept != a.Kept {
		return nil
	}
	if s.States != nil {
		switch a.Name {
		case "states":
			return s.States
		case "first":
			return state(s.States.First)
		case "last":
			return state(s.States.Last)
		}
	}
	if a.Of == nil {
		return nil
	}
	x := a.Of(s)
	switch {
	case math.IsNaN(x) || math.IsInf(x, 0):
		return nil
	case a.exact != nil && !s.Overflow:
		if digits := a.exact(s.Exact()); digits != "" {
			return digits
		}
	}
	return x
}

// state returns the name of a state; nil for none.
func state(name string) any {
	if name == "" {
		return nil
	}
	return name
}
