package window_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

// outageTruth finds the outages of an interval among all points, oldest first.
func outageTruth(h history, start, end time.Time, longer time.Duration) (out []window.Outage) {
	times := []time.Time{{}}
	for _, p := range h {
		times = append(times, p.p.Time)
	}
	times = append(times, time.Time{})
	for i := range len(times) - 1 {
		o := window.Outage{From: times[i], To: times[i+1]}
		from, to := o.From, o.To
		if from.IsZero() {
			from = start.AddDate(-100, 0, 0)
		}
		if to.IsZero() {
			to = end // nothing is known of later
		}
		if i > 0 && to.Sub(from) <= longer {
			continue
		}
		if from.Before(end) && start.Before(to) && from.Before(to) {
			out = append(out, o)
		}
	}
	return out
}

func all[V any](t *testing.T, seq iter.Seq2[V, error]) (out []V) {
	t.Helper()
	for v, err := range seq {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, v)
	}
	return out
}

// Outages and uptime equal what an independent pass finds over the whole history, in both orders.
func TestOutagesAreTheModel(t *testing.T) {
	rnd := rand.New(rand.NewPCG(7, 19))
	outages, open := 0, 0
	for round := range 300 {
		z := zone(t, []string{"UTC", "Europe/Berlin"}[rnd.IntN(2)])
		from := time.Date(2026, 3, 24, 0, 0, 0, 0, z)
		h := randomHistory(rnd, from, 6)
		if round%8 == 0 {
			h = h[:min(len(h), rnd.IntN(4))]
		}
		pick := func() time.Time {
			if len(h) > 0 && rnd.IntN(3) == 0 {
				return h[rnd.IntN(len(h))].p.Time
			}
			return from.Add(time.Duration(rnd.Int64N(int64(9*24*time.Hour)) - int64(24*time.Hour)))
		}
		start, end := pick(), pick()
		if end.Before(start) {
			start, end = end, start
		}
		in := tsdb.Between(start, end)
		longer := time.Duration(1 + rnd.Int64N(int64(3*time.Hour)))
		if n := len(h); n > 1 && round%4 == 0 { // a silence of exactly this length is no outage
			i := 1 + rnd.IntN(n-1)
			longer = max(1, h[i].p.Time.Sub(h[i-1].p.Time))
		}
		want := outageTruth(h, start, end, longer)
		grid := []window.Grid{window.Every(time.Hour), window.Days(1), window.Months(1)}[rnd.IntN(3)].In(z)
		var wantUp []window.Uptime
		for at := grid.Start(start); at.Before(end) && start.Before(end); at = grid.Next(at) {
			u := window.Uptime{Start: at, End: grid.Next(at)}
			a, b := at, u.End
			if a.Before(start) {
				a, u.Partial = start, true
			}
			if b.After(end) {
				b, u.Partial = end, true
			}
			for _, o := range want {
				if part := o.Within(tsdb.Between(a, b)); part.Seconds() > 0 {
					u.Down = u.Down.Add(part)
					u.Outages++
				}
			}
			down, _ := u.Down.Duration()
			u.Up = window.NewSpan(b.Sub(a) - down)
			wantUp = append(wantUp, u)
		}
		for _, order := range []tsdb.Order{tsdb.OldestFirst, tsdb.NewestFirst} {
			got := all(t, window.Outages(t.Context(), h, tsdb.Entity{}, in, longer, order))
			gotUp := all(t, window.ReadUptime(t.Context(), grid, h, tsdb.Entity{}, in, longer, order))
			if order == tsdb.NewestFirst {
				slices.Reverse(got)
				slices.Reverse(gotUp)
			}
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Fatalf("round %d, order %v, from %v to %v: outages of more than %v\n %v\nwant %v\nin %v", round, order, start, end, longer, got, want, h)
			}
			if fmt.Sprint(gotUp) != fmt.Sprint(wantUp) {
				t.Fatalf("round %d, order %v, from %v to %v, %v: uptime\n %v\nwant %v", round, order, start, end, grid, gotUp, wantUp)
			}
		}
		for _, o := range want {
			outages++
			if o.From.IsZero() || o.To.IsZero() {
				open++
			}
		}
	}
	if outages < 500 || open < 50 {
		t.Errorf("the histories have %d outages, %d of them open: too few to test anything", outages, open)
	}
}

func TestOutagesRefuse(t *testing.T) {
	noon := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	hour := tsdb.Between(noon, noon.Add(time.Hour))
	broken := errors.New("broken")
	for want, seq := range map[string]iter.Seq2[window.Outage, error]{
		"tsdb: invalid input: longest silence is 0s; want more than 0":                    window.Outages(t.Context(), history{}, tsdb.Entity{}, hour, 0),
		"tsdb: invalid input: interval is open; want an interval with a start and an end": window.Outages(t.Context(), history{}, tsdb.Entity{}, tsdb.Since(noon), time.Hour),
		"tsdb: invalid input: ranger is nil; want a repository":                           window.Outages[telemetry](t.Context(), nil, tsdb.Entity{}, hour, time.Hour),
		"broken": window.Outages(t.Context(), failing{broken}, tsdb.Entity{}, hour, time.Hour),
	} {
		var err error
		for _, err = range seq { //nolint:revive // the loop keeps the last error
		}
		if fmt.Sprint(err) != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	for _, err := range window.ReadUptime(t.Context(), window.Grid{}, history{}, tsdb.Entity{}, hour, time.Hour) {
		if !errors.Is(err, tsdb.ErrInvalid) {
			t.Errorf("the zero grid: %v, want ErrInvalid", err)
		}
	}
	for range window.ReadUptime(t.Context(), window.Every(time.Minute), history{}, tsdb.Entity{}, hour, time.Hour) {
		break // leaving the loop must not panic
	}
}

// failing is a Ranger that fails.
type failing struct{ err error }

func (f failing) Range(context.Context, tsdb.Entity, tsdb.Interval, ...tsdb.ReadOption) iter.Seq2[tsdb.Point[telemetry], error] {
	return func(yield func(tsdb.Point[telemetry], error) bool) { yield(tsdb.Point[telemetry]{}, f.err) }
}
