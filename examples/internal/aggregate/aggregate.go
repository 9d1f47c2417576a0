// Package aggregate names the numbers of a measure in a window of time, as the parameters of latestapi and the flags of tidectl
// do.
package aggregate

import (
	"math"
	"slices"

	"github.com/tidemark-go/tidemark/tsdb/window"
)

// Aggregate is one number of a measure in a window, and the aggregates of package window that it belongs to.
type Aggregate struct {
	Name string
	Kept window.Aggregates
	of   func(*window.Summary) float64
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

// Number returns the number of a summary, and false if it has none: its measure does not have the aggregate, or the window has no
// number.
func (a Aggregate) Number(s *window.Summary) (float64, bool) {
	x := a.of(s)
	return x, s.Aggregates&a.Kept != 0 && !math.IsNaN(x) && !math.IsInf(x, 0)
}
