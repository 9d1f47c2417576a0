package window_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/internal/sketch"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

var shares = []float64{0, 1e-9, 0.001, 0.01, 0.05, 0.07, 0.25, 1. / 3, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 1}

// ranked returns the number that a share of ascending numbers does not exceed. It computes the rank from q in
// thousandths of a millionth, so that 0.07 is seven hundredths.
func ranked(sorted []float64, q float64) float64 {
	parts := int(math.Round(q * 1e9))
	if q*3 == 1 {
		return sorted[(len(sorted)+2)/3-1]
	}
	return sorted[max(1, (parts*len(sorted)+999_999_999)/1_000_000_000)-1]
}

// near reports whether a quantile is within the stated error.
func near(got, want float64) bool {
	return math.Abs(got-want) <= sketch.Error*math.Abs(want)*(1+1e-12)
}

func encoded(t *testing.T, s *sketch.Sketch) []byte {
	t.Helper()
	b, err := s.AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Quantiles of windows are those of an independent pass over random series, in both orders, and the sketches of hours
// merge to the sketch of the day.
func TestQuantilesAreTheModel(t *testing.T) {
	rnd := rand.New(rand.NewPCG(19, 6))
	gauge := func(v telemetry) (float64, bool) { return number(v.gauge) }
	measures := []window.Measure[telemetry]{
		{Name: "float", Of: gauge, Aggregates: window.Quantiles},
		{Name: "exact", Int: telemetry.milli, Decimals: 3, Aggregates: window.Quantiles},
	}
	compared := 0
	for round := range 20 {
		from := time.Date(2026, 3, 24, 0, 0, 0, 0, time.UTC)
		h := randomHistory(rnd, from, 4)
		in := tsdb.Between(from.Add(time.Duration(rnd.Int64N(int64(30*time.Hour)))), from.Add(72*time.Hour))
		for _, order := range []tsdb.Order{tsdb.OldestFirst, tsdb.NewestFirst} {
			merged, days := map[time.Time]*sketch.Sketch{}, 0
			for _, g := range []window.Grid{window.Every(time.Hour), window.Days(1)} {
				agg, err := window.New(g, measures, window.Options{})
				if err != nil {
					t.Fatal(err)
				}
				for b, err := range agg.Read(t.Context(), h, tsdb.Entity{}, in, order) {
					if err != nil {
						continue // an unreadable point
					}
					for i := range measures {
						var xs []float64
						times, rats := h.numbers(&measures[i])
						for j, at := range times {
							if in.Contains(at) && !at.Before(b.Start) && at.Before(b.End) {
								x, _ := rats[j].Float64()
								xs = append(xs, x)
							}
						}
						slices.Sort(xs)
						s := b.Values[i]
						if s.Count != int64(len(xs)) || window.SketchOf(s).Count() != s.Count {
							t.Fatalf("round %d, %v, %v: Count %d, of the sketch %d, want %d", round, g, b.Start, s.Count, window.SketchOf(s).Count(), len(xs))
						}
						for _, q := range shares {
							if got := s.Quantile(q); len(xs) == 0 && !math.IsNaN(got) || len(xs) > 0 && !near(got, ranked(xs, q)) {
								t.Fatalf("round %d, %v, %v: quantile %v of %s is %v, numbers %v", round, g, b.Start, q, s.Name, got, xs)
							}
							compared++
						}
						if len(xs) > 0 && (s.Quantile(0) != xs[0] || s.Quantile(1) != xs[len(xs)-1]) {
							t.Fatalf("round %d, %v, %v: quantiles %v to %v, want the exact ends", round, g, b.Start, s.Quantile(0), s.Quantile(1))
						}
					}
					day := window.Days(1).Start(b.Start)
					if g == window.Days(1) {
						if days++; !bytes.Equal(encoded(t, merged[day]), encoded(t, window.SketchOf(b.Values[0]))) {
							t.Fatalf("round %d: the hours of %v do not merge to the day", round, day)
						}
						continue
					}
					if merged[day] == nil {
						merged[day] = &sketch.Sketch{}
					}
					merged[day].Merge(window.SketchOf(b.Values[0]))
				}
			}
			if days == 0 {
				t.Fatal("no days")
			}
		}
	}
	if compared < 10_000 {
		t.Errorf("compared %d quantiles: too few to test anything", compared)
	}
}

// Small whole numbers, and decimals as whole multiples, have exact quantiles.
func TestQuantilesOfExactNumbers(t *testing.T) {
	for decimals := range 4 {
		agg, err := window.New(window.Days(1), []window.Measure[int64]{
			{Name: "n", Int: func(n int64) (int64, bool) { return n, true }, Decimals: decimals, Aggregates: window.Quantiles},
		}, window.Options{})
		if err != nil {
			t.Fatal(err)
		}
		points := func(yield func(tsdb.Point[int64], error) bool) {
			for n := int64(-64); n <= 64; n++ {
				if !yield(tsdb.Point[int64]{Time: time.Unix(n+200, 0), Value: n}, nil) {
					return
				}
			}
		}
		for b, err := range agg.Over(points, tsdb.AllTime(), tsdb.OldestFirst) {
			if err != nil {
				t.Fatal(err)
			}
			for rank := 1; rank <= 129; rank++ {
				want := window.NewDecimal(int64(rank-65), decimals).Float64()
				if got := b.Values[0].Quantile(float64(rank) / 129); got != want {
					t.Errorf("%d decimals: rank %d is %v, want %v", decimals, rank, got, want)
				}
			}
		}
	}
}

// Only a gauge has quantiles. A gap has none, filled or not.
func TestWhereThereAreQuantiles(t *testing.T) {
	of := func(x float64) (float64, bool) { return x, true }
	for _, kind := range []window.Kind{window.Counter, window.State} {
		_, err := window.New(window.Days(1), []window.Measure[float64]{{Name: "x", Kind: kind, Of: of, Aggregates: window.Quantiles}}, window.Options{})
		if bad, ok := errors.AsType[*tsdb.InvalidError](err); !ok || bad.Value != "quantiles of a "+kind.String() {
			t.Errorf("quantiles of a %v: %v", kind, err)
		}
	}
	agg, err := window.New(window.Every(time.Hour), []window.Measure[float64]{{Name: "x", Of: of, Aggregates: window.Quantiles}}, window.Options{Gaps: window.Previous})
	if err != nil {
		t.Fatal(err)
	}
	noon := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	points := func(yield func(tsdb.Point[float64], error) bool) {
		yield(tsdb.Point[float64]{Time: noon, Value: 20}, nil)
	}
	var lines []string
	for b, err := range agg.Over(points, tsdb.Between(noon, noon.Add(2*time.Hour)), tsdb.OldestFirst) {
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(b.Values[0])
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, string(text))
	}
	want := []string{
		`{"count":1,"min":20,"max":20,"p50":20,"p95":20,"p99":20}`,
		`{"count":0,"min":20,"max":20,"p50":null,"p95":null,"p99":null,"filled":true}`,
	}
	if !slices.Equal(lines, want) {
		t.Errorf("got  %s\nwant %s", lines, want)
	}
}
