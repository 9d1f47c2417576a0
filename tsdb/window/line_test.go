package window_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

type plainPoint = tsdb.Point[float64]

func pointsIn(points []plainPoint) iter.Seq2[plainPoint, error] {
	return func(yield func(plainPoint, error) bool) {
		for _, p := range points {
			if !yield(p, nil) {
				return
			}
		}
	}
}

// plain returns no number below -1e300.
func plain(v float64) (float64, bool) { return v, !(v < -1e300) }

type method func(iter.Seq2[plainPoint, error], tsdb.Interval, func(float64) (float64, bool), window.LineOptions) iter.Seq2[window.LineSample, error]

var methods = map[string]method{"M4": window.M4[float64], "LTTB": window.LTTB[float64]}

func samplesIn(t *testing.T, seq iter.Seq2[window.LineSample, error]) (out []window.LineSample) {
	t.Helper()
	for s, err := range seq {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, s)
	}
	return out
}

// series returns n random points of an interval, oldest first: dense and sparse parts, silences, equal times, values
// without a number.
func series(rnd *rand.Rand, n int, in time.Duration) []plainPoint {
	points := make([]plainPoint, 0, n)
	step := float64(in) / float64(n+1)
	at, value := 0.0, 0.0
	for range n {
		switch rnd.IntN(20) {
		case 0:
			at += step * 15 * rnd.Float64()
		case 1: // the same time again
		default:
			at += step * rnd.Float64()
		}
		if at >= float64(in) {
			break
		}
		value += rnd.NormFloat64()
		v := value
		switch rnd.IntN(40) {
		case 0:
			v = math.NaN()
		case 1:
			v = math.Inf(1 - 2*rnd.IntN(2))
		case 2:
			v = -math.MaxFloat64 // plain returns none for it
		case 3:
			v = value + 50*rnd.NormFloat64()
		}
		points = append(points, plainPoint{Time: noon.Add(time.Duration(at)), Value: v})
	}
	return points
}

// raw returns the line through all points.
func raw(points []plainPoint, gap time.Duration) (out []window.LineSample) {
	for _, p := range points {
		v, ok := plain(p.Value)
		if !ok || math.IsNaN(v) || math.IsInf(v, 0) {
			continue
		}
		s := window.LineSample{Time: p.Time, Value: v}
		s.Break = gap > 0 && len(out) > 0 && p.Time.Sub(out[len(out)-1].Time) > gap
		out = append(out, s)
	}
	return out
}

// extent is the part of a column that a line covers.
type extent struct{ low, high float64 }

// drawn returns what a line covers of each column: its samples there, and its crossings of the column's edges.
func drawn(line []window.LineSample, columns int, in time.Duration) []extent {
	out := make([]extent, columns)
	for i := range out {
		out[i] = extent{math.Inf(1), math.Inf(-1)}
	}
	cover := func(i int, v float64) {
		if i >= 0 && i < columns {
			out[i] = extent{min(out[i].low, v), max(out[i].high, v)}
		}
	}
	width := float64(in) / float64(columns)
	column := func(s window.LineSample) int { // with exact integers: the test's intervals are small
		return int(int64(s.Time.Sub(noon)) * int64(columns) / int64(in))
	}
	for i, s := range line {
		cover(column(s), s.Value)
		if i == 0 || s.Break {
			continue
		}
		from := line[i-1]
		for edge := column(from) + 1; edge <= column(s); edge++ {
			part := (float64(edge)*width - float64(from.Time.Sub(noon))) / float64(s.Time.Sub(from.Time))
			v := from.Value + part*(s.Value-from.Value)
			cover(edge-1, v)
			cover(edge, v)
		}
	}
	return out
}

// eachRandom calls test with the samples of random points, in every other case with a gap that draw returns.
func eachRandom(t *testing.T, m method, draw func(rnd *rand.Rand, in time.Duration, columns int) time.Duration, test func(seed uint64, samples []window.LineSample, points []plainPoint, columns int, in, gap time.Duration)) {
	t.Helper()
	for seed := range uint64(300) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		in := time.Duration(1+rnd.IntN(1000)) * time.Second
		columns := 1 + rnd.IntN(60)
		points := series(rnd, rnd.IntN(1000), in)
		var gap time.Duration
		if rnd.IntN(2) == 0 {
			gap = draw(rnd, in, columns)
		}
		samples := samplesIn(t, m(pointsIn(points), tsdb.Between(noon, noon.Add(in)), plain, window.LineOptions{Columns: columns, MaxGap: gap}))
		test(seed, samples, points, columns, in, gap)
	}
}

// TestM4DrawsTheSameLine: the line through the samples covers the same part of each column as the line through all
// points.
func TestM4DrawsTheSameLine(t *testing.T) {
	visible := func(rnd *rand.Rand, in time.Duration, columns int) time.Duration { // wider than a column
		return in/time.Duration(columns) + time.Duration(rnd.Int64N(int64(in)))
	}
	eachRandom(t, window.M4[float64], visible, func(seed uint64, samples []window.LineSample, points []plainPoint, columns int, in, gap time.Duration) {
		all := raw(points, gap)
		if got, want := drawn(samples, columns, in), drawn(all, columns, in); !slices.Equal(got, want) {
			t.Fatalf("seed %d: %v\nwant %v", seed, got, want)
		}
		if len(samples) > 4*columns {
			t.Fatalf("seed %d: %d samples of %d columns", seed, len(samples), columns)
		}
		subset(t, samples, all)
	})
}

// subset checks that the samples are points of the line, in its order, each once.
func subset(t *testing.T, samples, all []window.LineSample) {
	t.Helper()
	i := 0
	for _, s := range samples {
		for i < len(all) && (!all[i].Time.Equal(s.Time) || all[i].Value != s.Value) {
			i++
		}
		if i == len(all) {
			t.Fatalf("%v is not a point of the line after the previous samples", s)
		}
		i++
	}
}

// TestLTTB compares with an implementation that holds all points in memory.
func TestLTTB(t *testing.T) {
	wide := func(rnd *rand.Rand, in time.Duration, columns int) time.Duration {
		return in / time.Duration(1+rnd.IntN(columns))
	}
	eachRandom(t, window.LTTB[float64], wide, func(seed uint64, samples []window.LineSample, points []plainPoint, columns int, in, gap time.Duration) {
		if want := naive(raw(points, 0), columns, in, gap); !slices.Equal(samples, want) {
			t.Fatalf("seed %d: %v\nwant %v", seed, samples, want)
		}
	})
}

// naive is LTTB over slices.
func naive(all []window.LineSample, columns int, in, gap time.Duration) (out []window.LineSample) {
	part := func(s window.LineSample, parts int) int {
		return int(int64(s.Time.Sub(noon)) * int64(parts) / int64(in))
	}
	var segments [][][]window.LineSample // by segment, then by column
	for i, s := range all {
		same := i > 0 && part(s, columns) == part(all[i-1], columns)
		switch {
		case i == 0 || !same && gap > 0 && s.Time.Sub(all[i-1].Time) > gap:
			s.Break = i > 0
			segments = append(segments, [][]window.LineSample{{s}})
		case same:
			last := segments[len(segments)-1]
			last[len(last)-1] = append(last[len(last)-1], s)
		default:
			segments[len(segments)-1] = append(segments[len(segments)-1], []window.LineSample{s})
		}
	}
	for _, cols := range segments {
		out = append(out, cols[0][0])
		for i := 1; i < len(cols)-1; i++ {
			var meanX, meanY float64
			for _, s := range cols[i+1] {
				meanX += float64(s.Time.Sub(noon))
				meanY += s.Value
			}
			n := float64(len(cols[i+1]))
			a := out[len(out)-1]
			x := float64(a.Time.Sub(noon))
			var candidates []window.LineSample
			for q := range 4 {
				low, high := -1, -1
				for k, s := range cols[i] {
					if part(s, 4*columns)%4 != q {
						continue
					}
					if low < 0 || s.Value < cols[i][low].Value {
						low = k
					}
					if high < 0 || s.Value > cols[i][high].Value {
						high = k
					}
				}
				if low >= 0 {
					candidates = append(candidates, cols[i][min(low, high)], cols[i][max(low, high)])
				}
			}
			best, largest := candidates[0], -1.0
			for _, c := range candidates {
				if area := math.Abs((meanX/n-x)*(c.Value-a.Value) - (float64(c.Time.Sub(noon))-x)*(meanY/n-a.Value)); area > largest {
					best, largest = c, area
				}
			}
			out = append(out, best)
		}
		if last := cols[len(cols)-1]; len(cols) > 1 || len(last) > 1 {
			out = append(out, last[len(last)-1])
		}
	}
	return out
}

// TestInterruptions: a gap longer than MaxGap breaks the line, a shorter one does not.
func TestInterruptions(t *testing.T) {
	var points []plainPoint
	for _, second := range []int{0, 1, 2, 13, 14, 60, 61} {
		points = append(points, plainPoint{Time: noon.Add(time.Duration(second) * time.Second), Value: float64(second)})
	}
	for name, m := range methods {
		for gap, want := range map[time.Duration][]int{0: nil, 10 * time.Second: {13, 60}, 11 * time.Second: {60}, time.Minute: nil} {
			var got []int
			for _, s := range samplesIn(t, m(pointsIn(points), tsdb.Between(noon, noon.Add(100*time.Second)), plain, window.LineOptions{Columns: 100, MaxGap: gap})) {
				if s.Break {
					got = append(got, int(s.Value))
				}
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s: breaks of a gap of %v are before %v, want %v", name, gap, got, want)
			}
		}
	}
}

func TestRefused(t *testing.T) {
	hour := tsdb.Between(noon, noon.Add(time.Hour))
	one := pointsIn([]plainPoint{{Time: noon, Value: 1}})
	broken := errors.New("broken")
	for name, m := range methods {
		for _, tt := range []struct {
			name string
			seq  iter.Seq2[window.LineSample, error]
			want error
		}{
			{"no columns", m(one, hour, plain, window.LineOptions{}), tsdb.ErrInvalid},
			{"many columns", m(one, hour, plain, window.LineOptions{Columns: window.MaxColumns + 1}), tsdb.ErrInvalid},
			{"negative gap", m(one, hour, plain, window.LineOptions{Columns: 1, MaxGap: -1}), tsdb.ErrInvalid},
			{"no start", m(one, tsdb.Until(noon), plain, window.LineOptions{Columns: 1}), tsdb.ErrInvalid},
			{"no end", m(one, tsdb.Since(noon), plain, window.LineOptions{Columns: 1}), tsdb.ErrInvalid},
			{"ends mixed up", m(one, tsdb.Between(noon.Add(1), noon), plain, window.LineOptions{Columns: 1}), tsdb.ErrInvalid},
			{"a read that fails", m(func(yield func(plainPoint, error) bool) { yield(plainPoint{}, broken) }, hour, plain, window.LineOptions{Columns: 1}), broken},
		} {
			var last error
			pairs := 0
			for _, err := range tt.seq {
				last = err
				pairs++
			}
			if !errors.Is(last, tt.want) || pairs == 0 {
				t.Errorf("%s, %s: %v in %d pairs, want %v", name, tt.name, last, pairs, tt.want)
			}
		}
	}
}

// TestPointsThatDoNotDecode: their errors are passed on, and the line continues. Ending the loop at any point ends
// the read.
func TestPointsThatDoNotDecode(t *testing.T) {
	bad := &tsdb.PointError{Time: noon, Err: errors.New("bad")}
	ended := 0
	points := func(yield func(plainPoint, error) bool) {
		defer func() { ended++ }()
		for i := range 10 {
			if !yield(plainPoint{Time: noon.Add(time.Duration(i) * time.Second), Value: float64(i * i % 7)}, nil) || !yield(plainPoint{}, bad) {
				return
			}
		}
	}
	for name, m := range methods {
		seq := m(points, tsdb.Between(noon, noon.Add(10*time.Second)), plain, window.LineOptions{Columns: 10})
		samples, failed := 0, 0
		for _, err := range seq {
			if err != nil {
				failed++
			} else {
				samples++
			}
		}
		if samples != 10 || failed != 10 {
			t.Errorf("%s: %d samples and %d errors, want 10 of each", name, samples, failed)
		}
		for stop := range 20 {
			ended = 0
			n := 0
			for range seq {
				if n++; n > stop {
					break
				}
			}
			if ended != 1 {
				t.Errorf("%s, left after %d: the read ended %d times", name, stop, ended)
			}
		}
	}
}

// TestWideIntervals: columns are exact even if products exceed 64 bits.
func TestWideIntervals(t *testing.T) {
	from := time.Unix(0, 0)
	points := []plainPoint{{Time: from, Value: 1}, {Time: from.AddDate(290, 0, 0), Value: 2}}
	in := tsdb.Between(from, from.AddDate(290, 0, 0).Add(1))
	for name, m := range methods {
		if got := samplesIn(t, m(pointsIn(points), in, plain, window.LineOptions{Columns: window.MaxColumns})); len(got) != 2 {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestM4ByHand shows which points are kept, and where the line breaks.
func TestM4ByHand(t *testing.T) {
	day := tsdb.Between(noon, noon.Add(24*time.Hour))
	points := func(yield func(tsdb.Point[float64], error) bool) { // or repo.Range(ctx, roof, day, tsdb.OldestFirst)
		for minute := range 1440 {
			if minute/60 == 7 {
				continue // no measurement between 19:00 and 20:00
			}
			if !yield(tsdb.Point[float64]{Time: noon.Add(time.Duration(minute) * time.Minute), Value: float64(minute % 100)}, nil) {
				return
			}
		}
	}
	value := func(v float64) (float64, bool) { return v, true }
	var got []string
	for s, err := range window.M4(points, day, value, window.LineOptions{Columns: 3, MaxGap: 30 * time.Minute}) {
		got = append(got, fmt.Sprint(s.Time.Format(time.TimeOnly), " ", s.Value, " ", s.Break, " ", err))
	}
	want := []string{
		"12:00:00 0 false <nil>",
		"13:39:00 99 false <nil>",
		"18:59:00 19 false <nil>",
		"20:00:00 80 true <nil>",
		"20:19:00 99 false <nil>",
		"20:20:00 0 false <nil>",
		"03:59:00 59 false <nil>",
		"04:00:00 60 false <nil>",
		"04:39:00 99 false <nil>",
		"04:40:00 0 false <nil>",
		"11:59:00 39 false <nil>",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
}

// TestLinesOfCenturies: an interval may be longer than the 292 years of a time.Duration.
func TestLinesOfCenturies(t *testing.T) {
	from := time.Date(1970, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, years := range []int{330, 56833, 292000} {
		to := from.AddDate(years, 0, 0)
		in := tsdb.Between(from, to)
		const n = 1000
		var points []tsdb.Point[float64]
		for i := range n {
			seconds := (to.Unix() - from.Unix()) / n * int64(i)
			points = append(points, tsdb.Point[float64]{Time: time.Unix(from.Unix()+seconds, 0).UTC(), Value: float64(i % 100)})
		}
		points = append(points, tsdb.Point[float64]{Time: to.Add(-1), Value: 50})
		each := func(yield func(tsdb.Point[float64], error) bool) {
			for _, p := range points {
				if !yield(p, nil) {
					return
				}
			}
		}
		plain := func(v float64) (float64, bool) { return v, true }
		opts := window.LineOptions{Columns: 10}
		var drawn []window.LineSample
		for s, err := range window.M4(each, in, plain, opts) {
			if err != nil {
				t.Fatalf("a line of %d years: %v", years, err)
			}
			drawn = append(drawn, s)
		}
		if len(drawn) < 20 || len(drawn) > 40 || !drawn[len(drawn)-1].Time.Equal(to.Add(-1)) {
			t.Errorf("a line of %d years has %d samples; want 2 to 4 for each of 10 columns, and the last point", years, len(drawn))
		}
		if out, err := json.Marshal(drawn); err != nil {
			t.Errorf("the JSON of a line of %d years: %v, %.100s", years, err, out)
		}
		columns := 0
		for _, err := range window.LTTB(each, in, plain, opts) {
			if err != nil {
				t.Fatalf("a line of %d years: %v", years, err)
			}
			columns++
		}
		if columns < 10 || columns > 11 {
			t.Errorf("an LTTB of %d years has %d samples, want one for each of 10 columns and the last", years, columns)
		}
	}
}
