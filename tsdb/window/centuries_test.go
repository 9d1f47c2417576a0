package window_test

import (
	"encoding/json"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

// hours of the years from 1970 to 2299: 330 years, 80 of them leap years.
const hours1970to2300 = (330*365 + 80) * 24

// TestCenturies: numbers that are further apart than the 292 years of a time.Duration are aggregated like others.
func TestCenturies(t *testing.T) {
	year := func(n int) time.Time { return time.Date(n, 1, 1, 0, 0, 0, 0, time.UTC) }
	kwh := 3.0
	first, last := pointOrError{}, pointOrError{}
	first.p.Time, last.p.Time = year(1970), year(2300)
	first.p.Value, last.p.Value = telemetry{gauge: &kwh, counter: new(float64), mode: new(string)}, telemetry{gauge: &kwh, counter: &kwh, mode: new(string)}
	h := history{first, last}
	in := tsdb.Between(year(1970), year(2800))
	measures := []window.Measure[telemetry]{
		{Name: "held", Of: func(v telemetry) (float64, bool) { return number(v.gauge) }, Aggregates: window.Integral},
		{Name: "line", Of: func(v telemetry) (float64, bool) { return number(v.gauge) }, Aggregates: window.Integral, Linear: true},
		{Name: "kwh", Of: func(v telemetry) (float64, bool) { return number(v.counter) }, Kind: window.Counter},
		{Name: "mode", Text: telemetry.state, Kind: window.State},
	}
	near := func(what string, got, want float64) {
		t.Helper()
		if math.Abs(got-want) > 1e-9*want {
			t.Errorf("%s is %v, want %v", what, got, want)
		}
	}
	for _, order := range []tsdb.Order{tsdb.OldestFirst, tsdb.NewestFirst} {
		for _, months := range []int{12, 9996} { // years, and one bucket for all
			a, err := window.New(window.Months(months), measures, window.Options{Gaps: window.Null})
			if err != nil {
				t.Fatal(err)
			}
			held, line, mode := window.Span{}, window.Span{}, window.Span{}
			integral := 0.0
			for b, err := range a.Read(t.Context(), h, tsdb.Entity{}, in, order) {
				if err != nil {
					t.Fatal(err)
				}
				held, line = held.Add(b.Values[0].Covered), line.Add(b.Values[1].Covered)
				integral += b.Values[1].Integral
				mode = mode.Add(b.Values[3].States.Time("")).Add(b.Values[3].States.Unknown)
				if b.Values[2].Increase > 0 {
					near("the rate", b.Values[2].Rate, 3.0/hours1970to2300/3600)
				}
			}
			near("the integral", integral, 3*hours1970to2300*3600)
			want := fmt.Sprintf("%dh0m0s", hours1970to2300)
			if held.String() != want || line.String() != want {
				t.Errorf("in buckets of %d months the integrals cover %v and %v, want %s", months, held, line, want)
			}
			near("the time of the state", mode.Seconds(), float64(in2800())*3600)
		}
	}
	a, err := window.New(window.Months(12), measures[:1], window.Options{Gaps: window.Linear})
	if err != nil {
		t.Fatal(err)
	}
	rising := history{first, last}
	ten := 333.0
	rising[0].p.Value.gauge, rising[1].p.Value.gauge = &kwh, &ten
	for b, err := range a.Read(t.Context(), rising, tsdb.Entity{}, tsdb.Between(year(1970), year(2301)), tsdb.OldestFirst) {
		if err != nil {
			t.Fatal(err)
		}
		if want := 3 + float64(b.Start.Year()-1970); math.Abs(b.Values[0].Mean-want) > 0.01 {
			t.Errorf("the line from 3 in 1970 to 333 in 2300 is at %v in %d, want %v", b.Values[0].Mean, b.Start.Year(), want)
		}
	}
	for o, err := range window.Outages(t.Context(), h, tsdb.Entity{}, tsdb.Between(year(1970), year(2300)), time.Hour) {
		if got := o.Within(in); err != nil || got.Seconds() != hours1970to2300*3600 {
			t.Errorf("the outage lasts %v, %v; want %d hours", got, err, hours1970to2300)
		}
	}
	down := window.Span{}
	for u, err := range window.ReadUptime(t.Context(), window.Months(9996), h, tsdb.Entity{}, tsdb.Between(year(1970), year(2300)), time.Hour) {
		if err != nil {
			t.Fatal(err)
		}
		down = down.Add(u.Down)
	}
	near("the time down", down.Seconds(), hours1970to2300*3600)
}

func in2800() int { return int(time.Date(2800, 1, 1, 0, 0, 0, 0, time.UTC).Unix() / 3600) }

// TestPointsAfterTheYear9999: such points have buckets, which have JSON.
func TestPointsAfterTheYear9999(t *testing.T) {
	far := time.Date(58803, 2, 28, 1, 2, 3, 0, time.UTC)
	load := 2.0
	p, q := pointOrError{}, pointOrError{}
	p.p.Time, p.p.Value = noon, telemetry{gauge: &load}
	q.p.Time, q.p.Value = far, telemetry{gauge: &load}
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	for _, grid := range []window.Grid{
		window.Every(time.Hour), window.Every(7 * time.Hour), window.Every(time.Hour).In(berlin), window.Days(1).In(berlin), window.Weeks(2, time.Monday), window.Months(1), window.Months(10000),
	} {
		a, err := window.New(grid, []window.Measure[telemetry]{
			{Name: "load", Of: func(v telemetry) (float64, bool) { return number(v.gauge) }, Aggregates: window.Integral | window.Delta | window.Mean},
		}, window.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, order := range []tsdb.Order{tsdb.OldestFirst, tsdb.NewestFirst} {
			n, covered := 0, window.Span{}
			for b, err := range a.Read(t.Context(), history{p, q}, tsdb.Entity{}, tsdb.AllTime(), order) {
				if err != nil {
					t.Fatalf("%v: %v", grid, err)
				}
				n++
				covered = covered.Add(b.Values[0].Covered)
				for _, at := range []time.Time{b.Start, b.End, b.End.Add(-1)} {
					start, next := grid.Bucket(at)
					if at.Equal(b.End) && !start.Equal(b.End) || !at.Equal(b.End) && (!start.Equal(b.Start) || !next.Equal(b.End)) {
						t.Errorf("%v: the bucket of %v is %v to %v; want that of the point, %v to %v", grid, at, start, next, b.Start, b.End)
					}
				}
				if _, err := json.Marshal(b); err != nil {
					t.Errorf("%v: the bucket from %v has no JSON: %v", grid, b.Start, err)
				}
			}
			if n != 2 || covered == (window.Span{}) {
				t.Errorf("%v: %d buckets, which cover %v; want 2", grid, n, covered)
			}
		}
	}
	last := window.Outage{From: noon, To: far}
	for _, v := range []any{last, window.Uptime{Start: noon, End: far}, window.Row[float64]{Time: far, Values: []window.Sample[float64]{{Time: far, OK: true}}}} {
		if out, err := json.Marshal(v); err != nil {
			t.Errorf("the JSON of %+v is %s, %v", v, out, err)
		}
	}
}
