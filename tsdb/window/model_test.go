package window_test

import (
	"errors"
	"iter"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// sample has a number for each of two measures, or none.
type sample struct{ temp, load *float64 }

func number(x *float64) (float64, bool) {
	if x == nil {
		return 0, false
	}
	return *x, true
}

var measures = []window.Measure[sample]{
	{Name: "temp", Of: func(s sample) (float64, bool) { return number(s.temp) }},
	{Name: "load", Of: func(s sample) (float64, bool) { return number(s.load) }},
}

// item is an element of a sequence of points: a point or an error.
type item struct {
	point tsdb.Point[sample]
	err   error
}

func sequence(items []item) iter.Seq2[tsdb.Point[sample], error] {
	return func(yield func(tsdb.Point[sample], error) bool) {
		for _, i := range items {
			if !yield(i.point, i.err) {
				return
			}
		}
	}
}

func at(t time.Time, temp ...float64) item {
	p := tsdb.Point[sample]{Time: t}
	if len(temp) > 0 {
		p.Value.temp = &temp[0]
	}
	if len(temp) > 1 {
		p.Value.load = &temp[1]
	}
	return item{point: p}
}

func badAt(t time.Time) item {
	return item{point: tsdb.Point[sample]{Time: t}, err: &tsdb.PointError{Time: t, Err: errors.New("bits")}}
}

func collect(t testing.TB, seq iter.Seq2[window.Bucket, error]) (buckets []window.Bucket, bad []*tsdb.PointError, err error) {
	t.Helper()
	ended := false
	for b, e := range seq {
		if ended {
			t.Fatal("the sequence went on after its error")
		}
		if pe, ok := errors.AsType[*tsdb.PointError](e); ok {
			bad = append(bad, pe)
			continue
		}
		if e != nil {
			err, ended = e, true
			continue
		}
		buckets = append(buckets, b)
	}
	return buckets, bad, err
}

// model aggregates items, oldest first, in a slow and simple way: it lists all buckets of the interval or of the
// points, scans all points for each bucket, and all buckets for each gap.
func model(starts []time.Time, items []item, in tsdb.Interval, gaps window.Gaps) []window.Bucket {
	var out []window.Bucket
	for i := range len(starts) - 1 {
		from, to := starts[i], starts[i+1]
		b := window.Bucket{Start: from, End: to, Partial: !in.Contains(from) || !in.Contains(to.Add(-1))}
		numbers := make([][]float64, len(measures))
		for _, it := range items {
			if it.point.Time.Before(from) || !it.point.Time.Before(to) {
				continue
			}
			if it.err != nil {
				b.Bad++
				continue
			}
			b.Points++
			for m := range measures {
				if x, ok := measures[m].Of(it.point.Value); ok && !math.IsNaN(x) && !math.IsInf(x, 0) {
					numbers[m] = append(numbers[m], x)
				}
			}
		}
		for m := range measures {
			b.Values = append(b.Values, summarize(measures[m].Name, numbers[m]))
		}
		out = append(out, b)
	}
	first := slices.IndexFunc(out, holds)
	last := len(out) - 1
	for last >= 0 && !holds(out[last]) {
		last--
	}
	start, hasStart := in.Start()
	end, hasEnd := in.End()
	if hasStart && hasEnd && !start.Before(end) || first < 0 && !(hasStart && hasEnd) {
		return nil
	}
	if hasStart {
		first = slices.IndexFunc(out, func(b window.Bucket) bool { return b.End.After(start) })
	}
	if hasEnd {
		last = slices.IndexFunc(out, func(b window.Bucket) bool { return !b.End.Before(end) })
	}
	out = out[first : last+1]
	if gaps == window.LeaveOut {
		return slices.DeleteFunc(out, func(b window.Bucket) bool { return !holds(b) })
	}
	for m := range measures {
		for i := range out {
			if out[i].Values[m].Count > 0 {
				continue
			}
			older, newer := i-1, i+1
			for older >= 0 && out[older].Values[m].Count == 0 {
				older--
			}
			for newer < len(out) && out[newer].Values[m].Count == 0 {
				newer++
			}
			s := &out[i].Values[m]
			switch {
			case gaps == window.Previous && older >= 0:
				o := out[older].Values[m]
				s.Mean, s.Min, s.Max, s.First, s.Last, s.Filled = o.Mean, o.Min, o.Max, o.First, o.Last, true
			case gaps == window.Linear && older >= 0 && newer < len(out):
				o, n := out[older].Values[m], out[newer].Values[m]
				x := out[i].Start.Sub(out[older].Start).Seconds() / out[newer].Start.Sub(out[older].Start).Seconds()
				line := func(o, n float64) float64 { return o + (n-o)*x }
				s.Mean, s.Min, s.Max = line(o.Mean, n.Mean), line(o.Min, n.Min), line(o.Max, n.Max)
				s.First, s.Last, s.Filled = line(o.First, n.First), line(o.Last, n.Last), true
			}
		}
	}
	return out
}

func holds(b window.Bucket) bool { return b.Points+b.Bad > 0 }

// summarize adds without rounding.
func summarize(name string, xs []float64) window.Summary {
	nan := math.NaN()
	s := window.Summary{Name: name, Mean: nan, Min: nan, Max: nan, First: nan, Last: nan}
	if len(xs) == 0 {
		return s
	}
	sum := new(big.Float).SetPrec(2000)
	for _, x := range xs {
		sum.Add(sum, new(big.Float).SetFloat64(x))
	}
	s.Count = int64(len(xs))
	s.Sum, _ = sum.Float64()
	s.Mean, _ = sum.Quo(sum, new(big.Float).SetInt64(s.Count)).Float64()
	s.Min, s.Max = slices.Min(xs), slices.Max(xs)
	s.First, s.Last = xs[0], xs[len(xs)-1]
	return s
}

func same(a, b window.Bucket) bool {
	if !a.Start.Equal(b.Start) || !a.End.Equal(b.End) || a.Points != b.Points || a.Bad != b.Bad || a.Partial != b.Partial || len(a.Values) != len(b.Values) {
		return false
	}
	for i, x := range a.Values {
		y := b.Values[i]
		if x.Name != y.Name || x.Count != y.Count || x.Filled != y.Filled {
			return false
		}
		exact := [][2]float64{{x.Min, y.Min}, {x.Max, y.Max}, {x.First, y.First}, {x.Last, y.Last}}
		for _, p := range exact {
			if !x.Filled && p[0] != p[1] && !(math.IsNaN(p[0]) && math.IsNaN(p[1])) {
				return false
			}
		}
		for _, p := range append(exact, [2]float64{x.Sum, y.Sum}, [2]float64{x.Mean, y.Mean}) {
			if math.IsNaN(p[0]) != math.IsNaN(p[1]) || math.Abs(p[0]-p[1]) > 1e-12*(1+math.Abs(p[1])) {
				return false
			}
		}
	}
	return true
}

// For any zone, grid, gaps, order and interval, the streamed buckets equal the model's.
func TestAggregatorIsTheModel(t *testing.T) {
	names := []string{"1h", "2h", "6h", "15m", "1d", "3d", "1w"}
	for seed, change := range changes {
		t.Run(change.zone+" "+change.what, func(t *testing.T) {
			z := zone(t, change.zone)
			face := watch(z, change.date)
			rnd := rand.New(rand.NewPCG(uint64(seed), 7))
			for _, name := range names {
				starts := face.starts(name)
				near := func(n int) (int, int) {
					mid := len(starts) / 2
					return max(0, mid-n), min(len(starts)-1, mid+n)
				}
				lo, hi := near(60)
				for round := range 7 {
					items := randomItems(rnd, starts[lo+(hi-lo)/8], starts[hi-(hi-lo)/8])
					in := randomInterval(rnd, round, starts[lo], starts[hi], items)
					items = slices.DeleteFunc(items, func(i item) bool { return !in.Contains(i.point.Time) })
					for gaps := window.LeaveOut; gaps <= window.Linear; gaps++ {
						a, err := window.New(grids[name].In(z), measures, window.Options{Gaps: gaps})
						if err != nil {
							t.Fatal(err)
						}
						want := model(starts[lo:hi+1], items, in, gaps)
						compare(t, name, a, items, in, want)
					}
				}
			}
		})
	}
}

func compare(t *testing.T, name string, a *window.Aggregator[sample], items []item, in tsdb.Interval, want []window.Bucket) {
	t.Helper()
	oldest, bad, err := collect(t, a.Over(sequence(items), in, tsdb.OldestFirst))
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	backward := slices.Clone(items)
	slices.Reverse(backward)
	newest, badToo, err := collect(t, a.Over(sequence(backward), in, tsdb.NewestFirst))
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	slices.Reverse(newest)
	if len(bad) != len(badToo) {
		t.Fatalf("%s: %d bad points oldest first, %d newest first", name, len(bad), len(badToo))
	}
	for which, got := range map[string][]window.Bucket{"oldest first": oldest, "newest first": newest} {
		if len(got) != len(want) {
			t.Fatalf("%s, %s, in %v: %d buckets, want %d\n got %v\nwant %v", name, which, in, len(got), len(want), got, want)
		}
		for i := range got {
			if !same(got[i], want[i]) {
				t.Fatalf("%s, %s: bucket %d is\n     %+v\nwant %+v", name, which, i, got[i], want[i])
			}
		}
	}
}

// randomItems returns items, oldest first, in clusters with gaps between them: several at one time, some bad, some
// without a number for one measure or both.
func randomItems(rnd *rand.Rand, from, to time.Time) []item {
	var items []item
	for range rnd.IntN(8) {
		center := from.Add(time.Duration(rnd.Int64N(int64(to.Sub(from)))))
		for range rnd.IntN(12) {
			when := center.Add(time.Duration(rnd.NormFloat64() * float64(to.Sub(from)) / 60)).UTC()
			if when.Before(from) || !when.Before(to) {
				continue
			}
			it := at(when)
			if rnd.IntN(10) > 0 {
				x := rnd.NormFloat64() * math.Pow(10, float64(rnd.IntN(12)))
				it.point.Value.temp = &x
			}
			if rnd.IntN(3) > 0 {
				x := [...]float64{rnd.Float64(), math.NaN(), math.Inf(1), -40, 0.1}[rnd.IntN(5)]
				it.point.Value.load = &x
			}
			switch rnd.IntN(12) {
			case 0:
				it = badAt(when)
			case 1:
				items = append(items, it)
			}
			items = append(items, it)
		}
	}
	slices.SortStableFunc(items, func(a, b item) int { return a.point.Time.Compare(b.point.Time) })
	return items
}

// randomInterval returns each kind of interval in turn, within the time of the model.
func randomInterval(rnd *rand.Rand, round int, from, to time.Time, items []item) tsdb.Interval {
	pick := func() time.Time { return from.Add(time.Duration(rnd.Int64N(int64(to.Sub(from))))) }
	a, b := pick(), pick()
	if b.Before(a) {
		a, b = b, a
	}
	switch round % 7 {
	case 0:
		return tsdb.AllTime()
	case 1:
		return tsdb.Between(from, to)
	case 2:
		return tsdb.Between(a, b)
	case 3:
		return tsdb.Since(a)
	case 4:
		return tsdb.Until(b)
	case 5:
		return tsdb.Between(from, to).OpenStart()
	}
	if len(items) > 0 {
		return tsdb.Between(items[0].point.Time, items[len(items)-1].point.Time).ClosedEnd()
	}
	return tsdb.Between(a, a)
}
