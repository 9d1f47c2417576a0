package window_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/tenant"
	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/tsdbtest"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

// TestHoldOfPointsStoredOnChange: with Hold, means over time and integrals of points that are stored on change are
// those of all points: exactly if only equal values are left out, and otherwise within the dead band. The mean of the
// stored points is not.
func TestHoldOfPointsStoredOnChange(t *testing.T) {
	const every, least, band = 10 * time.Second, 5 * time.Minute, 0.5
	for _, tt := range []struct {
		name   string
		same   func(last, next float64) bool
		within float64
	}{
		{"equal values", nil, 1e-9},
		{"a dead band", func(last, next float64) bool { return math.Abs(last-next) <= band }, band},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := tsdb.MustDefine("temp", tsdb.Key("device"), codec.Float64(), tsdb.SchemaOptions{})
			store, _ := tsdbtest.Open(t, tsdbtest.Options{}, s)
			w, err := store.NewWriter(tsdb.WriterOptions{})
			if err != nil {
				t.Fatal(err)
			}
			repo := s.For(store, tenant.MustParse("acme"))
			whole, changed := tsdb.NewEntity("every"), tsdb.NewEntity("changed")
			sink := repo.Via(w).OnChange(tsdb.OnChange[float64]{Same: tt.same, AtLeast: least})
			draw := rand.New(rand.NewPCG(7, 7))
			x := 20.0
			for at := noon; at.Before(noon.Add(6 * time.Hour)); at = at.Add(every) {
				if pause := at.Sub(noon) / time.Minute; pause >= 100 && pause < 130 {
					continue // nothing comes for half an hour
				}
				switch draw.IntN(60) {
				case 0:
					x += float64(draw.IntN(9) - 4)
				case 1, 2, 3:
					if tt.same != nil {
						x += draw.Float64() - 0.5
					}
				}
				v := x
				if at.Minute() >= 10 && at.Minute() < 12 { // all points of two minutes are stored
					v += 20 + 2*float64(at.Second()/10%2)
				}
				if err := repo.Via(w).Enqueue(t.Context(), whole, at, v); err != nil {
					t.Fatal(err)
				}
				if err := sink.Enqueue(t.Context(), changed, at, v); err != nil {
					t.Fatal(err)
				}
			}
			if err := w.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			if st := w.Stats(); st.Unchanged < 1000 {
				t.Fatalf("only %d points are left out", st.Unchanged)
			}
			hours, err := window.New(window.Every(time.Hour), []window.Measure[float64]{{
				Name:       "temp",
				Of:         func(x float64) (float64, bool) { return x, true },
				Aggregates: window.Mean | window.Integral, Hold: true, MaxGap: least + every,
			}}, window.Options{})
			if err != nil {
				t.Fatal(err)
			}
			in := tsdb.Between(noon, noon.Add(6*time.Hour))
			plain, n := 0.0, 0
			for got, err := range hours.Read(t.Context(), repo, changed, in, tsdb.OldestFirst) {
				if err != nil {
					t.Fatal(err)
				}
				for want, err := range hours.Read(t.Context(), repo, whole, tsdb.Between(got.Start, got.End), tsdb.OldestFirst) {
					if err != nil {
						t.Fatal(err)
					}
					g, w := got.Values[0], want.Values[0]
					if g.Covered != w.Covered {
						t.Errorf("%v: %v covered, want %v", got.Start, g.Covered, w.Covered)
					}
					if math.Abs(g.TimeMean-w.TimeMean) > tt.within || math.Abs(g.Integral-w.Integral) > tt.within*3600+1e-6 {
						t.Errorf("%v: mean over time %v, integral %v; of all points %v, %v", got.Start, g.TimeMean, g.Integral, w.TimeMean, w.Integral)
					}
					plain = max(plain, math.Abs(g.Mean-w.Mean))
					n++
				}
			}
			if n != 6 {
				t.Fatalf("%d hours", n)
			}
			if plain <= band {
				t.Errorf("the means of the stored points differ by only %v: the test shows nothing", plain)
			}
		})
	}
}
