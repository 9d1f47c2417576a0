package rollup_test

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/rollup"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

// expected computes the buckets of points, oldest first.
func expected(r *rollup.Rollup[reading], points map[time.Time]reading, now time.Time) []window.Bucket {
	byStart := map[time.Time][]reading{}
	for at, v := range points {
		s := r.Grid().Start(at)
		byStart[s] = append(byStart[s], v)
	}
	var out []window.Bucket
	for s, values := range byStart {
		b := window.Bucket{Start: s, End: r.Grid().Next(s), Points: int64(len(values))}
		b.Open = now.Before(b.End.Add(lateness(r)))
		temp, wet := window.Summary{Name: "temp"}, window.Summary{Name: "wet"}
		for _, v := range values {
			if math.Abs(v.TempC) <= 1000 {
				take(&temp, int64(math.Round(v.TempC*100)))
			}
			if v.Wet != nil {
				take(&wet, *v.Wet)
			}
		}
		b.Values = []window.Summary{summary(temp, 100, true), summary(wet, 1, false)}
		out = append(out, b)
	}
	slices.SortFunc(out, func(a, b window.Bucket) int { return a.Start.Compare(b.Start) })
	return out
}

func lateness(r *rollup.Rollup[reading]) time.Duration {
	if r.Name() == "hour" {
		return 5 * time.Minute
	}
	return time.Minute
}

func take(s *window.Summary, x int64) {
	if s.Count == 0 {
		s.Min, s.Max = float64(x), float64(x)
	}
	s.Count++
	s.Sum += float64(x)
	s.Min, s.Max = min(s.Min, float64(x)), max(s.Max, float64(x))
}

func summary(s window.Summary, unit float64, all bool) window.Summary {
	nan := math.NaN()
	s.Aggregates = window.Basic
	if !all {
		s.Aggregates = window.Mean
	}
	s.First, s.Last, s.Mean = nan, nan, nan
	if s.Count == 0 {
		s.Min, s.Max = nan, nan
		return s
	}
	s.Sum /= unit
	s.Mean = s.Sum / float64(s.Count)
	s.Min, s.Max = s.Min/unit, s.Max/unit
	if !all {
		s.Min, s.Max = nan, nan
	}
	return s
}

// same compares buckets. NaN equals NaN, and means may differ in about the last bit.
func same(t *testing.T, what string, got, want []window.Bucket, order tsdb.Order) {
	t.Helper()
	want = slices.Clone(want)
	if order == tsdb.NewestFirst {
		slices.Reverse(want)
	}
	if len(got) != len(want) {
		t.Fatalf("%s: %d buckets, want %d", what, len(got), len(want))
	}
	for i := range got {
		g, w := got[i], want[i]
		if !g.Start.Equal(w.Start) || !g.End.Equal(w.End) || g.Points != w.Points || g.Bad != w.Bad || g.Open != w.Open || len(g.Values) != len(w.Values) {
			t.Fatalf("%s: bucket %d is\n%+v, want\n%+v", what, i, g, w)
		}
		for j := range g.Values {
			a, b := g.Values[j], w.Values[j]
			if a.Name != b.Name || a.Count != b.Count || !near(a.Sum, b.Sum) || !near(a.Mean, b.Mean) || !near(a.Min, b.Min) || !near(a.Max, b.Max) || !near(a.First, b.First) || a.Overflow != b.Overflow {
				t.Fatalf("%s: bucket %d of %v is\n%+v, want\n%+v", what, i, g.Start, a, b)
			}
		}
	}
}

func near(a, b float64) bool {
	return a == b || math.IsNaN(a) && math.IsNaN(b) || math.Abs(a-b) <= 1e-9*math.Max(math.Abs(a), math.Abs(b))
}
