package window_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/internal/sketch"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

// fleet is what several entities have stored. It is a Ranger.
type fleet map[tsdb.Entity]history

func (f fleet) Range(ctx context.Context, e tsdb.Entity, in tsdb.Interval, opts ...tsdb.ReadOption) iter.Seq2[tsdb.Point[telemetry], error] {
	return f[e].Range(ctx, e, in, opts...)
}

// groupTruth adds up what expectBuckets finds of each entity, with all buckets. Deviations are computed from all
// numbers again.
func groupTruth(histories []history, g window.Grid, measures []window.Measure[telemetry], in tsdb.Interval) []window.Bucket {
	var out []window.Bucket
	for _, h := range histories {
		buckets := expectBuckets(h, g, measures, in, window.Options{Gaps: window.Null})
		if out == nil {
			out = make([]window.Bucket, len(buckets))
		}
		for j, b := range buckets {
			o := &out[j]
			o.Start, o.End, o.Partial = b.Start, b.End, b.Partial
			o.Points += b.Points
			o.Bad += b.Bad
			if b.Points+b.Bad > 0 {
				o.Entities++
			}
			if o.Values == nil {
				for i := range measures {
					s := truth(&measures[i], nil, nil, b.Start, b.End)
					if b.Values[i].States != nil {
						s.States = &window.States{}
					}
					o.Values = append(o.Values, s)
				}
			}
			for i := range measures {
				addTruth(&o.Values[i], &b.Values[i])
			}
		}
	}
	start, _ := in.Start()
	end, _ := in.End()
	for j := range out {
		for i := range measures {
			var xs []float64
			for _, h := range histories {
				times, numbers := h.numbers(&measures[i])
				for k, t := range times {
					if in.Contains(t) && !t.Before(out[j].Start) && t.Before(out[j].End) && !t.Before(start) && t.Before(end) {
						x, _ := numbers[k].Float64()
						xs = append(xs, x)
					}
				}
			}
			out[j].Values[i].StdDev = deviation(xs)
			if measures[i].Aggregates&window.Quantiles != 0 && len(xs) > 0 {
				sk := &sketch.Sketch{}
				window.SetSketch(&out[j].Values[i], sk)
				for _, x := range xs {
					sk.Add(x)
				}
			}
		}
	}
	return out
}

func deviation(xs []float64) float64 {
	if len(xs) < 2 {
		return math.NaN()
	}
	mean, squares := 0.0, 0.0
	for _, x := range xs {
		mean += x / float64(len(xs))
	}
	for _, x := range xs {
		squares += (x - mean) * (x - mean)
	}
	return math.Sqrt(squares / float64(len(xs)-1))
}

func addTruth(s, o *window.Summary) {
	s.Integral += o.Integral
	s.Covered = s.Covered.Add(o.Covered)
	if s.Covered.Seconds() > 0 {
		s.TimeMean = s.Integral / s.Covered.Seconds()
	}
	if o.States != nil {
		s.States.Transitions += o.States.Transitions
		s.States.Unknown = s.States.Unknown.Add(o.States.Unknown)
		for _, t := range o.States.Times {
			i := slices.IndexFunc(s.States.Times, func(u window.StateTime) bool { return u.State == t.State })
			if i < 0 {
				i, s.States.Times = len(s.States.Times), append(s.States.Times, window.StateTime{State: t.State})
			}
			s.States.Times[i].Time = s.States.Times[i].Time.Add(t.Time)
			s.States.Times[i].Entered += t.Entered
		}
		slices.SortFunc(s.States.Times, func(a, b window.StateTime) int {
			if len(a.State) != len(b.State) && (a.State == "-1" || b.State == "-1") {
				return len(b.State) - len(a.State) // the only negative number
			}
			return compareText(a.State, b.State)
		})
	}
	if o.Count == 0 {
		return
	}
	if s.Count == 0 {
		s.Min, s.Max, s.Since = o.Min, o.Max, o.Since
	}
	s.Count += o.Count
	s.Sum += o.Sum
	s.Mean = s.Sum / float64(s.Count)
	s.Min, s.Max = min(s.Min, o.Min), max(s.Max, o.Max)
	s.Delta += o.Delta
	s.Increase += o.Increase
	s.Resets += o.Resets
	if o.Since.Before(s.Since) {
		s.Since = o.Since
	}
	if !math.IsNaN(o.Rate) {
		if math.IsNaN(s.Rate) {
			s.Rate = 0
		}
		s.Rate += o.Rate
	}
}

func compareText(a, b string) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// The buckets of a group are the sums of what an independent pass finds of each entity, in both orders.
func TestGroupsAreTheModel(t *testing.T) {
	rnd := rand.New(rand.NewPCG(19, 9))
	shared := 0
	for round := range 16 {
		z := zone(t, []string{"UTC", "Europe/Berlin"}[rnd.IntN(2)])
		from := time.Date(2026, 3, 27, 0, 0, 0, 0, z)
		f, entities, histories := fleet{}, []tsdb.Entity(nil), []history(nil)
		for i := range 1 + rnd.IntN(6) {
			e := tsdb.NewEntity("site", fmt.Sprint(i))
			h := randomHistory(rnd, from.Add(time.Duration(rnd.Int64N(int64(24*time.Hour)))), 1+rnd.IntN(3))
			f[e], entities, histories = h, append(entities, e), append(histories, h)
		}
		start := from.Add(time.Duration(rnd.Int64N(int64(30 * time.Hour))))
		in := tsdb.Between(start, start.Add(time.Duration(1+rnd.Int64N(int64(48*time.Hour)))))
		grid := []window.Grid{window.Every(time.Hour), window.Days(1)}[rnd.IntN(2)].In(z)
		measures := kindMeasures([...]time.Duration{0, time.Hour}[rnd.IntN(2)])
		want := groupTruth(histories, grid, measures, in)
		for j := range want {
			if want[j].Entities > 1 {
				shared++
			}
		}
		for _, gaps := range []window.Gaps{window.LeaveOut, window.Null} {
			agg, err := window.New(grid, measures, window.Options{Gaps: gaps})
			if err != nil {
				t.Fatal(err)
			}
			kept := slices.Clone(want)
			if gaps == window.LeaveOut {
				kept = slices.DeleteFunc(kept, func(b window.Bucket) bool { return b.Points+b.Bad == 0 })
			}
			for _, order := range []tsdb.Order{tsdb.OldestFirst, tsdb.NewestFirst} {
				name := fmt.Sprintf("round %d, %v, gaps %v, order %v", round, grid, gaps, order)
				got := all(t, agg.ReadGroup(t.Context(), f, entities, in, order, tsdb.Concurrency(1+rnd.IntN(4))))
				if order == tsdb.NewestFirst {
					slices.Reverse(got)
				}
				compareGroup(t, name, measures, got, kept)
			}
		}
	}
	if shared < 50 {
		t.Errorf("%d buckets have several entities: too few to test anything", shared)
	}
}

func compareGroup(t *testing.T, name string, measures []window.Measure[telemetry], got, want []window.Bucket) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d buckets, want %d", name, len(got), len(want))
	}
	for j, b := range got {
		w := want[j]
		if !b.Start.Equal(w.Start) || b.Points != w.Points || b.Bad != w.Bad || b.Partial != w.Partial || b.Entities != w.Entities {
			t.Fatalf("%s: bucket %d is %+v, want %+v", name, j, b, w)
		}
		for i := range measures {
			a, err := measures[i].Kind.Resolve(measures[i].Aggregates)
			if err != nil {
				t.Fatal(err)
			}
			if measures[i].Text != nil {
				a |= window.Durations
			}
			s := b.Values[i]
			if a &^= window.Ends; s.Aggregates != a {
				t.Fatalf("%s: measure %s has the aggregates %v, want %v", name, measures[i].Name, s.Aggregates, a)
			}
			d := differs(a, s, w.Values[i])
			if d == "" {
				d = statesDiffer(s.States, w.Values[i].States)
			}
			if window.ExactOf(s) != nil && a&window.Increase != 0 && math.Abs(window.ExactOf(s).Increase.Float64()-w.Values[i].Increase) > 1e-9 {
				d = fmt.Sprintf("exact increase %v, want %v", s.Exact().Increase, w.Values[i].Increase)
			}
			if q, wantQ := s.Quantile(0.7), w.Values[i].Quantile(0.7); a&window.Quantiles != 0 && q != wantQ && !(math.IsNaN(q) && math.IsNaN(wantQ)) {
				d = fmt.Sprintf("70th percentile %v, want %v", q, wantQ)
			}
			if d != "" {
				t.Fatalf("%s: measure %s of the bucket at %v: %s", name, measures[i].Name, b.Start, d)
			}
		}
	}
}

func TestGroupIsBounded(t *testing.T) {
	agg, err := window.New(window.Every(time.Hour), kindMeasures(0), window.Options{MaxFilled: 24})
	if err != nil {
		t.Fatal(err)
	}
	noon := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	last := func(in tsdb.Interval) (err error) {
		for _, err = range agg.ReadGroup(t.Context(), fleet{}, []tsdb.Entity{{}}, in) { //nolint:revive // the loop keeps the last error
		}
		return err
	}
	if err := last(tsdb.Between(noon, noon.Add(24*time.Hour))); err != nil {
		t.Errorf("a day of hours: %v", err)
	}
	if err := last(tsdb.Between(noon, noon.Add(25*time.Hour))); !errors.Is(err, window.ErrTooManyFilled) {
		t.Errorf("more buckets than MaxFilled: %v, want ErrTooManyFilled", err)
	}
	if err := last(tsdb.Since(noon)); !errors.Is(err, tsdb.ErrInvalid) {
		t.Errorf("an interval without an end: %v, want ErrInvalid", err)
	}
	broken := errors.New("broken")
	for _, err := range agg.ReadGroup(t.Context(), failing{broken}, []tsdb.Entity{{}, {}}, tsdb.Between(noon, noon.Add(time.Hour))) {
		if !errors.Is(err, broken) {
			t.Errorf("got %v, want the error of the read", err)
		}
	}
}
