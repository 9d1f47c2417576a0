package window_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

func (v telemetry) finite() (float64, bool) {
	x, ok := number(v.gauge)
	return x, ok && !math.IsNaN(x)
}

// alignTruth returns the row of a time, by looking through all points of each series.
func alignTruth(histories []history, at time.Time, maxAge time.Duration) window.Row[float64] {
	row := window.Row[float64]{Time: at}
	for _, h := range histories {
		var s window.Sample[float64]
		for _, p := range h {
			if x, ok := p.p.Value.finite(); ok && p.err == nil && !p.p.Time.After(at) {
				s = window.Sample[float64]{Value: x, Time: p.p.Time, OK: true}
			}
		}
		if maxAge > 0 && at.Sub(s.Time) > maxAge {
			s = window.Sample[float64]{}
		}
		row.Values = append(row.Values, s)
	}
	return row
}

// Aligned rows equal what an independent pass finds over the whole histories: on grids and at the series' own times, in
// both orders, with values from before the interval and a maximum age.
func TestAlignedRowsAreTheModel(t *testing.T) {
	rnd := rand.New(rand.NewPCG(8, 19))
	carried, missing := 0, 0
	for round := range 60 {
		z := zone(t, []string{"UTC", "Europe/Berlin"}[rnd.IntN(2)])
		from := time.Date(2026, 3, 27, 0, 0, 0, 0, z)
		var histories []history
		var series []window.Series[float64]
		for range 1 + rnd.IntN(4) {
			h := randomHistory(rnd, from.Add(time.Duration(rnd.Int64N(int64(24*time.Hour)))), 1+rnd.IntN(3))
			if rnd.IntN(8) == 0 {
				h = nil
			}
			histories = append(histories, h)
			series = append(series, window.NewSeries(h, tsdb.Entity{}, telemetry.finite))
		}
		start := from.Add(time.Duration(rnd.Int64N(int64(60 * time.Hour))))
		end := start.Add(time.Duration(rnd.Int64N(int64(30 * time.Hour))))
		in := tsdb.Between(start, end)
		maxAge := []time.Duration{0, time.Hour, 10 * time.Minute}[rnd.IntN(3)]
		grid := []window.Grid{window.Every(time.Hour), window.Every(10 * time.Minute), window.Days(1)}[rnd.IntN(3)].In(z)
		var onGrid, atPoints []window.Row[float64]
		bad := 0
		for at := grid.Start(start); at.Before(end); at = grid.Next(at) {
			if !at.Before(start) {
				onGrid = append(onGrid, alignTruth(histories, at, maxAge))
			}
		}
		var times []time.Time
		for _, h := range histories {
			for _, p := range h {
				if !in.Contains(p.p.Time) {
					continue
				}
				if p.err != nil {
					bad++
				} else if _, ok := p.p.Value.finite(); ok {
					times = append(times, p.p.Time)
				}
			}
		}
		slices.SortFunc(times, time.Time.Compare)
		for _, at := range slices.CompactFunc(times, time.Time.Equal) {
			atPoints = append(atPoints, alignTruth(histories, at, maxAge))
		}
		for _, order := range []tsdb.Order{tsdb.OldestFirst, tsdb.NewestFirst} {
			name := fmt.Sprintf("round %d, %v, order %v, age %v", round, grid, order, maxAge)
			opts := window.AlignOptions{MaxAge: maxAge, Order: order}
			compareRows(t, name+", on the grid", window.Align(t.Context(), grid, in, series, opts), onGrid, order, -1)
			compareRows(t, name+", at points", window.Align(t.Context(), window.Grid{}, in, series, opts), atPoints, order, bad)
		}
		for _, r := range append(onGrid, atPoints...) {
			for _, s := range r.Values {
				switch {
				case !s.OK:
					missing++
				case s.Time.Before(start):
					carried++
				}
			}
		}
	}
	if carried < 200 || missing < 200 {
		t.Errorf("%d values are carried into the interval, %d missing: too few to test anything", carried, missing)
	}
}

// compareRows also counts the errors of points, unless bad is -1: on a grid, the last points may not be read.
func compareRows(t *testing.T, name string, seq iter.Seq2[window.Row[float64], error], want []window.Row[float64], order tsdb.Order, bad int) {
	t.Helper()
	var got []window.Row[float64]
	seen := 0
	for r, err := range seq {
		if _, ok := errors.AsType[*tsdb.PointError](err); ok {
			seen++
			continue
		}
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		got = append(got, r)
	}
	if order == tsdb.NewestFirst {
		slices.Reverse(got)
	}
	if len(got) != len(want) || bad >= 0 && seen != bad {
		t.Fatalf("%s: %d rows and %d errors of points, want %d and %d", name, len(got), seen, len(want), bad)
	}
	for i, r := range got {
		if !r.Time.Equal(want[i].Time) || fmt.Sprint(r.Values) != fmt.Sprint(want[i].Values) {
			t.Fatalf("%s: row %d is\n     %v\nwant %v", name, i, r, want[i])
		}
	}
}

func TestAlignRefuses(t *testing.T) {
	noon := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	hour := tsdb.Between(noon, noon.Add(time.Hour))
	broken := errors.New("broken")
	good := window.NewSeries(history{}, tsdb.Entity{}, telemetry.finite)
	shuffled := history{mode(noon.Add(2*time.Minute), ""), mode(noon.Add(time.Minute), "")}
	for i := range shuffled {
		x := 1.0
		shuffled[i].p.Value.gauge = &x
	}
	for want, seq := range map[string]iter.Seq2[window.Row[float64], error]{
		"number of series is 0; want 1 to 100":   window.Align[float64](t.Context(), window.Grid{}, hour, nil, window.AlignOptions{}),
		"number of series is 101; want 1 to 100": window.Align(t.Context(), window.Grid{}, hour, slices.Repeat([]window.Series[float64]{good}, 101), window.AlignOptions{}),
		"series 1 is the zero value; want":       window.Align(t.Context(), window.Grid{}, hour, []window.Series[float64]{good, {}}, window.AlignOptions{}),
		"MaxAge is -1ns; want 0 for none":        window.Align(t.Context(), window.Grid{}, hour, []window.Series[float64]{good}, window.AlignOptions{MaxAge: -1}),
		"order is 7; want":                       window.Align(t.Context(), window.Grid{}, hour, []window.Series[float64]{good}, window.AlignOptions{Order: 7}),
		"interval is open; want":                 window.Align(t.Context(), window.Days(1), tsdb.Since(noon), []window.Series[float64]{good}, window.AlignOptions{}),
		"broken":                                 window.Align(t.Context(), window.Grid{}, hour, []window.Series[float64]{good, window.NewSeries(failing{broken}, tsdb.Entity{}, telemetry.finite)}, window.AlignOptions{}),
		"out of order: 2026-06-01T12:01:00Z":     window.Align(t.Context(), window.Grid{}, hour, []window.Series[float64]{window.NewSeries(shuffled, tsdb.Entity{}, telemetry.finite)}, window.AlignOptions{Order: tsdb.OldestFirst}),
	} {
		var err error
		for _, err = range seq { //nolint:revive // the loop keeps the last error
		}
		if !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, err := range window.Align(ctx, window.Every(time.Minute), hour, []window.Series[float64]{good}, window.AlignOptions{}) {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("with an ended context: %v", err)
		}
	}
	for range window.Align(t.Context(), window.Every(time.Minute), hour, []window.Series[float64]{good, good}, window.AlignOptions{}) {
		break // goleak finds what leaving the loop would leave behind
	}
}

func TestMissingValuesAreNullInJSON(t *testing.T) {
	noon := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	row := window.Row[float64]{Time: noon, Values: []window.Sample[float64]{{Value: 2, Time: noon, OK: true}, {}}}
	got, err := json.Marshal(row)
	if want := `{"time":"2026-06-01T12:00:00Z","values":[{"value":2,"time":"2026-06-01T12:00:00Z"},null]}`; err != nil || string(got) != want {
		t.Errorf("got %s, %v, want %s", got, err, want)
	}
}
