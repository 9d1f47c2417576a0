// Package aggregate has the names of what a measure has in a window of time, and the form of windows, outages and aligned rows in
// JSON and CSV. latestapi and tidectl share them.
package aggregate

import (
	"math"
	"slices"

	"github.com/tidemark-go/tidemark/tsdb/window"
)

// Aggregate is one number of a measure in a window, or its states, and the aggregates of package window that it belongs to.
type Aggregate struct {
	Name string
	Kept window.Aggregates
	of   func(*window.Summary) float64 // nil for states
}

// All are all of them. The kind of a measure decides which it has.
var All = []Aggregate{
	{"count", window.Count, func(s *window.Summary) float64 { return float64(s.Count) }},
	{"sum", window.Sum, func(s *window.Summary) float64 { return s.Sum }},
	{"mean", window.Sum, func(s *window.Summary) float64 { return s.Mean }},
	{"min", window.Min, func(s *window.Summary) float64 { return s.Min }},
	{"max", window.Max, func(s *window.Summary) float64 { return s.Max }},
	{"first", window.Ends, func(s *window.Summary) float64 { return s.First }},
	{"last", window.Ends, func(s *window.Summary) float64 { return s.Last }},
	{"stddev", window.StdDev, func(s *window.Summary) float64 { return s.StdDev }},
	{"delta", window.Delta, func(s *window.Summary) float64 { return s.Delta }},
	{"increase", window.Increase, func(s *window.Summary) float64 { return s.Increase }},
	{"rate", window.Increase, func(s *window.Summary) float64 { return s.Rate }},
	{"resets", window.Increase, func(s *window.Summary) float64 { return float64(s.Resets) }},
	{"integral", window.Integral, func(s *window.Summary) float64 { return s.Integral }},
	{"time_mean", window.Integral, func(s *window.Summary) float64 { return s.TimeMean }},
	{"p50", window.Quantiles, func(s *window.Summary) float64 { return s.Quantile(0.5) }},
	{"p90", window.Quantiles, func(s *window.Summary) float64 { return s.Quantile(0.9) }},
	{"p95", window.Quantiles, func(s *window.Summary) float64 { return s.Quantile(0.95) }},
	{"p99", window.Quantiles, func(s *window.Summary) float64 { return s.Quantile(0.99) }},
	{"states", window.Durations, nil},
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

// value returns what a summary has of the aggregate: a float64, the name of a state, or *window.States. It is nil if the summary has
// nothing: its measure does not have the aggregate, or the window has no number.
func (a Aggregate) value(s *window.Summary) any {
	if s.Aggregates&a.Kept == 0 {
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
	if a.of == nil {
		return nil
	}
	if x := a.of(s); !math.IsNaN(x) && !math.IsInf(x, 0) {
		return x
	}
	return nil
}

// state returns the name of a state; nil for none.
func state(name string) any {
	if name == "" {
		return nil
	}
	return name
}
