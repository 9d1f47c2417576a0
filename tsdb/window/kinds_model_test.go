package window_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

// telemetry has a counter, a gauge and a state, each of which a point may lack.
type telemetry struct {
	counter, gauge *float64
	mode           *string
}

func (v telemetry) milli() (int64, bool) {
	if v.counter == nil || math.IsNaN(*v.counter) {
		return 0, false
	}
	return int64(math.Round(*v.counter * 1000)), true
}

func kindMeasures(maxGap time.Duration) []window.Measure[telemetry] {
	gauge := func(v telemetry) (float64, bool) { return number(v.gauge) }
	return []window.Measure[telemetry]{
		{Name: "counter", Kind: window.Counter, Of: func(v telemetry) (float64, bool) { return number(v.counter) }},
		{Name: "exact", Kind: window.Counter, Int: telemetry.milli, Decimals: 3, Aggregates: window.Min | window.Increase},
		{Name: "dips", Kind: window.Counter, Of: func(v telemetry) (float64, bool) { return number(v.counter) }, MaxDip: 20.0005},
		{Name: "exact dips", Kind: window.Counter, Int: telemetry.milli, Decimals: 3, MaxDip: 20},
		{Name: "held", Of: gauge, MaxGap: maxGap, Aggregates: window.Basic | window.StdDev | window.Delta | window.Integral | window.Quantiles},
		{Name: "linear", Of: gauge, Linear: true, Aggregates: window.Integral},
		{Name: "lasting", Of: gauge, Hold: true, MaxGap: maxGap, Aggregates: window.Integral},
		{Name: "state", Kind: window.State, Of: gauge},
		{Name: "cents", Int: telemetry.milli, Decimals: 3, Aggregates: window.Basic | window.Delta},
		{Name: "mode", Kind: window.State, Text: telemetry.state, MaxGap: maxGap},
		{Name: "level", Kind: window.State, Int: telemetry.level, Aggregates: window.Durations},
	}
}

// history is what an entity has stored, oldest first. It is a Ranger.
type history []pointOrError

type pointOrError struct {
	p   tsdb.Point[telemetry]
	err error
}

func (h history) Range(_ context.Context, _ tsdb.Entity, in tsdb.Interval, opts ...tsdb.ReadOption) iter.Seq2[tsdb.Point[telemetry], error] {
	return func(yield func(tsdb.Point[telemetry], error) bool) {
		read := slices.Clone(h)
		if !slices.Contains(opts, tsdb.ReadOption(tsdb.OldestFirst)) {
			slices.Reverse(read)
		}
		for _, p := range read {
			if in.Contains(p.p.Time) && !yield(p.p, p.err) {
				return
			}
		}
	}
}

// numbers returns the numbers of a measure, oldest first.
func (h history) numbers(m *window.Measure[telemetry]) (times []time.Time, xs []*big.Rat) {
	for _, p := range h {
		if p.err != nil {
			continue
		}
		var x *big.Rat
		if m.Text != nil {
			if _, ok := m.Text(p.p.Value); !ok {
				continue
			}
			x = new(big.Rat)
		} else if m.Int != nil {
			n, ok := m.Int(p.p.Value)
			if !ok {
				continue
			}
			x = big.NewRat(n, int64(math.Pow10(m.Decimals)))
		} else {
			f, ok := m.Of(p.p.Value)
			if !ok || math.IsNaN(f) || math.IsInf(f, 0) {
				continue
			}
			x = new(big.Rat).SetFloat64(f)
		}
		if m.Kind == window.Counter && x.Sign() < 0 {
			continue
		}
		times, xs = append(times, p.p.Time), append(xs, x)
	}
	return times, xs
}

// truth computes one measure of one bucket in rational numbers, from all that is known of the entity.
func truth(m *window.Measure[telemetry], times []time.Time, xs []*big.Rat, from, to time.Time) window.Summary {
	next := func(i int) (at time.Time, ok bool) { // until when the Integral knows the value
		if i+1 < len(times) {
			at, ok = times[i+1], m.MaxGap == 0 || times[i+1].Sub(times[i]) <= m.MaxGap
		} else {
			at = to
		}
		if last := times[i].Add(m.MaxGap); m.Hold && m.MaxGap > 0 && last.Before(at) {
			at = last
		}
		return at, ok || m.Hold
	}
	nan := math.NaN()
	s := window.Summary{Name: m.Name, Mean: nan, Min: nan, Max: nan, First: nan, Last: nan, StdDev: nan, Rate: nan, TimeMean: nan}
	float := func(r *big.Rat) float64 { x, _ := r.Float64(); return x }
	sum, squares, increase, delta, area := new(big.Rat), new(big.Rat), new(big.Rat), new(big.Rat), new(big.Rat)
	sub := func(a, b *big.Rat) *big.Rat { return new(big.Rat).Sub(a, b) }
	seconds := func(d time.Duration) *big.Rat { return big.NewRat(int64(d), int64(time.Second)) }
	for i, t := range times {
		if b, ok := next(i); ok {
			a := t
			if a.Before(from) {
				a = from
			}
			if b.After(to) {
				b = to
			}
			if a.Before(b) {
				at := func(u time.Time) *big.Rat { // the value at a time
					if !m.Linear {
						return xs[i]
					}
					part := new(big.Rat).Quo(seconds(u.Sub(t)), seconds(times[i+1].Sub(t)))
					return part.Mul(part, sub(xs[i+1], xs[i])).Add(part, xs[i])
				}
				mean := new(big.Rat).Add(at(a), at(b))
				mean.Mul(mean, big.NewRat(1, 2)).Mul(mean, seconds(b.Sub(a)))
				area.Add(area, mean)
				s.Covered = s.Covered.Add(window.NewSpan(b.Sub(a)))
			}
		}
		if t.Before(from) || !t.Before(to) {
			continue
		}
		x := xs[i]
		if s.Count == 0 {
			s.Since, s.FirstTime, s.First, s.Min, s.Max = t, t, float(x), float(x), float(x)
			delta.Neg(x)
			if i > 0 {
				s.Since = times[i-1]
				delta.Neg(xs[i-1])
			}
		}
		if i > 0 {
			if fall := sub(xs[i-1], x); fall.Sign() > 0 && fall.Cmp(new(big.Rat).SetFloat64(m.MaxDip)) > 0 {
				s.Resets++
				increase.Add(increase, x)
			} else {
				increase.Add(increase, sub(x, xs[i-1]))
			}
		}
		s.Count++
		s.Last, s.LastTime = float(x), t
		s.Min, s.Max = min(s.Min, float(x)), max(s.Max, float(x))
		sum.Add(sum, x)
		squares.Add(squares, new(big.Rat).Mul(x, x))
		if i+1 == len(times) || !times[i+1].Before(to) {
			delta.Add(delta, x)
		}
	}
	s.Integral = float(area)
	if s.Covered.Seconds() > 0 {
		s.TimeMean = s.Integral / s.Covered.Seconds()
	}
	if s.Count == 0 {
		return s
	}
	n := big.NewRat(s.Count, 1)
	s.Sum, s.Mean = float(sum), float(new(big.Rat).Quo(sum, n))
	s.Delta, s.Increase = float(delta), float(increase)
	if s.Count > 1 {
		square := new(big.Rat).Mul(sum, sum)
		v := sub(squares, square.Quo(square, n))
		s.StdDev = math.Sqrt(float(v.Quo(v, big.NewRat(s.Count-1, 1))))
	}
	if s.LastTime.After(s.Since) {
		s.Rate = s.Increase / s.LastTime.Sub(s.Since).Seconds()
	}
	return s
}

// expectBuckets computes the buckets of an interval with both ends, oldest first.
func expectBuckets(h history, g window.Grid, measures []window.Measure[telemetry], in tsdb.Interval, opts window.Options) []window.Bucket {
	start, _ := in.Start()
	end, _ := in.End()
	var out []window.Bucket
	for at := g.Start(start); at.Before(end); at = g.Next(at) {
		b := window.Bucket{Start: at, End: g.Next(at)}
		from, to := at, b.End
		if from.Before(start) {
			from, b.Partial = start, true
		}
		if to.After(end) {
			to, b.Partial = end, true
		}
		for _, p := range h {
			if p.p.Time.Before(from) || !p.p.Time.Before(to) {
				continue
			}
			if b.Points++; p.err != nil {
				b.Points--
				b.Bad++
			}
		}
		for i := range measures {
			times, xs := h.numbers(&measures[i])
			b.Values = append(b.Values, truth(&measures[i], times, xs, from, to))
			b.Values[i].States = stateTruth(h, &measures[i], from, to)
		}
		out = append(out, b)
	}
	for i := range measures {
		times, xs := h.numbers(&measures[i])
		for j := range out {
			if s := &out[j].Values[i]; s.Count == 0 {
				fillGap(s, out, i, j, times, xs, start, end, opts)
			}
			if s := &out[j].Values[i]; measures[i].Text != nil {
				s.First, s.Last = math.NaN(), math.NaN()
			}
		}
	}
	if opts.Gaps == window.LeaveOut {
		out = slices.DeleteFunc(out, func(b window.Bucket) bool { return b.Points+b.Bad == 0 })
	}
	return out
}

// fillGap fills one gap from the nearest buckets with numbers, or from the nearest numbers outside of the interval.
func fillGap(s *window.Summary, out []window.Bucket, measure, bucket int, times []time.Time, xs []*big.Rat, start, end time.Time, opts window.Options) {
	alone := func(i int) *window.Summary {
		x, _ := xs[i].Float64()
		return &window.Summary{Mean: x, Min: x, Max: x, First: x, Last: x, FirstTime: times[i], LastTime: times[i]}
	}
	var older, newer *window.Summary
	var olderAt, newerAt time.Time
	for j := bucket - 1; j >= 0 && older == nil; j-- {
		if out[j].Values[measure].Count > 0 {
			older, olderAt = &out[j].Values[measure], out[j].Start
		}
	}
	for j := bucket + 1; j < len(out) && newer == nil; j++ {
		if out[j].Values[measure].Count > 0 {
			newer, newerAt = &out[j].Values[measure], out[j].Start
		}
	}
	for i, t := range times {
		if older == nil && t.Before(start) && (i+1 == len(times) || !times[i+1].Before(start)) {
			older, olderAt = alone(i), t
		}
		if newer == nil && !t.Before(end) && (i == 0 || times[i-1].Before(end)) {
			newer, newerAt = alone(i), t
		}
	}
	near := func(d time.Duration) bool { return opts.MaxGap == 0 || d <= opts.MaxGap }
	mix := func(x float64) {
		line := func(a, b float64) float64 { return a + (b-a)*x }
		s.Mean, s.Min, s.Max = line(older.Mean, newer.Mean), line(older.Min, newer.Min), line(older.Max, newer.Max)
		s.First, s.Last, s.Filled = line(older.First, newer.First), line(older.Last, newer.Last), true
	}
	at := out[bucket].Start
	switch {
	case opts.Gaps == window.Previous && older != nil && near(at.Sub(older.LastTime)):
		newer = older
		mix(0)
	case opts.Gaps == window.Linear && older != nil && newer != nil && near(newer.FirstTime.Sub(older.LastTime)):
		mix(min(max(at.Sub(olderAt).Seconds()/newerAt.Sub(olderAt).Seconds(), 0), 1))
	}
}

// differs names the first aggregate of a kept one that differs.
func differs(a window.Aggregates, got, want window.Summary) string {
	floats := []struct {
		of        window.Aggregates
		name      string
		got, want float64
	}{
		{window.Sum, "Sum", got.Sum, want.Sum},
		{window.Sum, "Mean", got.Mean, want.Mean},
		{window.Min, "Min", got.Min, want.Min},
		{window.Max, "Max", got.Max, want.Max},
		{window.Ends, "First", got.First, want.First},
		{window.Ends, "Last", got.Last, want.Last},
		{window.StdDev, "StdDev", got.StdDev, want.StdDev},
		{window.Delta, "Delta", got.Delta, want.Delta},
		{window.Increase, "Increase", got.Increase, want.Increase},
		{window.Increase, "Rate", got.Rate, want.Rate},
		{window.Increase, "Resets", float64(got.Resets), float64(want.Resets)},
		{window.Integral, "Integral", got.Integral, want.Integral},
		{window.Integral, "TimeMean", got.TimeMean, want.TimeMean},
		{window.Integral, "Covered", got.Covered.Seconds(), want.Covered.Seconds()},
	}
	if got.Count != want.Count || got.Filled != want.Filled {
		return fmt.Sprintf("Count %d, Filled %v, want %d, %v", got.Count, got.Filled, want.Count, want.Filled)
	}
	for _, f := range floats {
		if a&f.of == 0 {
			f.want = math.NaN()
			if f.name == "Resets" || f.name == "Covered" || f.of == window.Sum && got.Count == 0 {
				continue
			}
		}
		if math.IsNaN(f.got) != math.IsNaN(f.want) || math.Abs(f.got-f.want) > 1e-9*(1+math.Abs(f.want)) {
			return fmt.Sprintf("%s %v, want %v", f.name, f.got, f.want)
		}
	}
	if a&window.Ends != 0 && (!got.FirstTime.Equal(want.FirstTime) || !got.LastTime.Equal(want.LastTime)) {
		return fmt.Sprintf("from %v to %v, want %v to %v", got.FirstTime, got.LastTime, want.FirstTime, want.LastTime)
	}
	if a&(window.Delta|window.Increase) != 0 && !got.Since.Equal(want.Since) {
		return fmt.Sprintf("Since %v, want %v", got.Since, want.Since)
	}
	return ""
}

// randomHistory returns points in clusters with silences between them. A counter is reset now and then, some points
// lack a number, some are unreadable, and some share a time.
func randomHistory(rnd *rand.Rand, from time.Time, days int) history {
	var h history
	counter := float64(rnd.IntN(1000))
	for t := from; t.Before(from.AddDate(0, 0, days)); {
		step := time.Duration(rnd.Int64N(int64(40 * time.Minute)))
		switch rnd.IntN(30) {
		case 0:
			step = time.Duration(rnd.Int64N(int64(30 * time.Hour)))
		case 1:
			step = 0
		}
		t = t.Add(step)
		p := pointOrError{p: tsdb.Point[telemetry]{Time: t}}
		if counter += float64(rnd.IntN(5000)) / 1000; rnd.IntN(25) == 0 {
			counter = float64(rnd.IntN(3))
		}
		if c := counter; rnd.IntN(6) > 0 {
			p.p.Value.counter = &c
			if rnd.IntN(30) == 0 {
				c = [...]float64{math.NaN(), -3}[rnd.IntN(2)]
			}
		}
		if x := rnd.NormFloat64()*10 + 1000; rnd.IntN(4) > 0 {
			p.p.Value.gauge = &x
			if rnd.IntN(20) == 0 {
				x = math.NaN()
			}
		}
		if rnd.IntN(3) > 0 {
			p.p.Value.mode = &[]string{"off", "on", "fault", ""}[rnd.IntN(4)]
		}
		if rnd.IntN(25) == 0 {
			p.err = &tsdb.PointError{Time: t, Err: errors.New("bits")}
		}
		h = append(h, p)
	}
	return h
}

// Each aggregate of each kind equals what an independent pass in rational numbers finds over the whole history: in both
// orders, for intervals that start and end anywhere, across changes of the clock, with each way to fill gaps.
func TestKindsAreTheModel(t *testing.T) {
	rnd := rand.New(rand.NewPCG(19, 1))
	zones := []string{"UTC", "Europe/Berlin", "Australia/Lord_Howe"}
	widths := []window.Grid{window.Every(time.Hour), window.Every(6 * time.Hour), window.Days(1)}
	resets, covered, filled, lasted := int64(0), window.Span{}, 0, window.Span{}
	for round := range 60 {
		zone := zone(t, zones[rnd.IntN(len(zones))])
		h := randomHistory(rnd, time.Date(2026, [...]time.Month{3, 10}[rnd.IntN(2)], 24, 0, 0, 0, 0, zone), 5)
		if round%10 == 0 {
			h = h[:min(len(h), rnd.IntN(4))]
		}
		g := widths[rnd.IntN(len(widths))].In(zone)
		a := time.Date(2026, [...]time.Month{3, 10}[rnd.IntN(2)], 23, 0, 0, 0, 0, zone).Add(time.Duration(rnd.Int64N(int64(100 * time.Hour))))
		in := tsdb.Between(a, a.Add(time.Duration(rnd.Int64N(int64(60*time.Hour)))))
		if len(h) > 0 && rnd.IntN(2) == 0 {
			at := h[rnd.IntN(len(h))].p.Time
			in = tsdb.Between(at, at.Add(time.Duration(rnd.Int64N(int64(60*time.Hour)))))
		}
		measures := kindMeasures([...]time.Duration{0, 20 * time.Minute, 3 * time.Hour}[rnd.IntN(3)])
		measures[5].MaxGap = [...]time.Duration{0, 10 * time.Minute, 5 * time.Hour}[rnd.IntN(3)]
		for gaps := window.LeaveOut; gaps <= window.Linear; gaps++ {
			defined := measures
			if gaps == window.Linear {
				defined = slices.DeleteFunc(slices.Clone(measures), func(m window.Measure[telemetry]) bool { return m.Kind == window.State })
			}
			opts := window.Options{Gaps: gaps, MaxGap: [...]time.Duration{0, time.Hour, 9 * time.Hour}[rnd.IntN(3)]}
			agg, err := window.New(g, defined, opts)
			if err != nil {
				t.Fatal(err)
			}
			want := expectBuckets(h, g, defined, in, opts)
			if want == nil && gaps != window.LeaveOut {
				continue
			}
			inside := slices.DeleteFunc(slices.Clone(h), func(p pointOrError) bool { return !in.Contains(p.p.Time) })
			wantOver := expectBuckets(inside, g, defined, in, opts)
			for _, order := range []tsdb.Order{tsdb.OldestFirst, tsdb.NewestFirst} {
				name := fmt.Sprintf("round %d, %v, gaps %v, order %v", round, g, gaps, order)
				compareKinds(t, name+", Read", defined, agg.Read(t.Context(), h, tsdb.Entity{}, in, order), want, order)
				compareKinds(t, name+", Over", defined, agg.Over(h.Range(t.Context(), tsdb.Entity{}, in, order), in, order), wantOver, order)
			}
			for _, b := range want {
				for _, s := range b.Values {
					resets, covered, lasted = resets+s.Resets, covered.Add(s.Covered), lasted.Add(s.States.Time("on"))
					if s.Filled {
						filled++
					}
				}
			}
		}
	}
	if resets < 100 || covered.Seconds() < 3600e3 || filled < 100 || lasted.Seconds() < 360e3 {
		t.Errorf("the series have %d resets, %v covered, %d filled, %v on: too few to test anything", resets, covered, filled, lasted)
	}
}

func compareKinds(t *testing.T, name string, measures []window.Measure[telemetry], seq iter.Seq2[window.Bucket, error], want []window.Bucket, order tsdb.Order) {
	t.Helper()
	var got []window.Bucket
	for b, err := range seq {
		if _, bad := errors.AsType[*tsdb.PointError](err); err != nil && !bad {
			t.Fatalf("%s: %v", name, err)
		} else if err == nil {
			got = append(got, b)
		}
	}
	if order == tsdb.NewestFirst {
		slices.Reverse(got)
	}
	if len(got) != len(want) {
		t.Fatalf("%s: %d buckets, want %d", name, len(got), len(want))
	}
	for i, b := range got {
		w := want[i]
		if !b.Start.Equal(w.Start) || b.Points != w.Points || b.Bad != w.Bad || b.Partial != w.Partial {
			t.Fatalf("%s: bucket %d is %+v, want %+v", name, i, b, w)
		}
		for j := range measures {
			a, err := measures[j].Kind.Resolve(measures[j].Aggregates)
			if err != nil {
				t.Fatal(err)
			}
			if d := differs(a, b.Values[j], w.Values[j]); d != "" {
				t.Fatalf("%s: measure %s of the bucket at %v: %s", name, measures[j].Name, b.Start, d)
			}
			if d := statesDiffer(b.Values[j].States, w.Values[j].States); d != "" {
				t.Fatalf("%s: measure %s of the bucket at %v: %s", name, measures[j].Name, b.Start, d)
			}
		}
	}
}
