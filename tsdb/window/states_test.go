package window_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-go/tidemark/tsdb"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

func (v telemetry) state() (string, bool) {
	if v.mode == nil {
		return "", false
	}
	return *v.mode, true
}

// level is one of -1, 0, 1, 2.
func (v telemetry) level() (int64, bool) {
	if v.gauge == nil || math.IsNaN(*v.gauge) {
		return 0, false
	}
	return int64(math.Floor(*v.gauge))%4 - 1, true
}

// stateTruth computes the states of one bucket from all that is known of the entity, or returns nil if the measure has
// none.
func stateTruth(h history, m *window.Measure[telemetry], from, to time.Time) *window.States {
	if m.Text == nil && m.Aggregates&window.Durations == 0 {
		return nil
	}
	var times []time.Time
	var names []string
	for _, p := range h {
		if p.err != nil {
			continue
		}
		name, ok := "", false
		if m.Text != nil {
			name, ok = m.Text(p.p.Value)
		} else {
			var n int64
			n, ok = m.Int(p.p.Value)
			name = strconv.FormatInt(n, 10)
		}
		if ok {
			times, names = append(times, p.p.Time), append(names, name)
		}
	}
	out, unknown := &window.States{}, to.Sub(from)
	all := map[string]window.StateTime{}
	first := true
	for i, t := range times {
		s := all[names[i]]
		a, b := t, to
		if a.Before(from) {
			a = from
		}
		if i+1 < len(times) && times[i+1].Before(b) {
			b = times[i+1]
		}
		if m.MaxGap > 0 && t.Add(m.MaxGap).Before(b) {
			b = t.Add(m.MaxGap)
		}
		if a.Before(b) {
			s.Time = s.Time.Add(window.NewSpan(b.Sub(a)))
			unknown -= b.Sub(a)
		}
		if !t.Before(from) && t.Before(to) {
			if i > 0 && names[i] != names[i-1] {
				s.Entered++
				out.Transitions++
			}
			if first {
				out.First, first = names[i], false
			}
			out.Last = names[i]
		}
		if s.State = names[i]; s.Time.Seconds() > 0 || s.Entered > 0 {
			all[names[i]] = s
		}
	}
	out.Unknown = window.NewSpan(unknown)
	for _, s := range all {
		out.Times = append(out.Times, s)
	}
	slices.SortFunc(out.Times, func(a, b window.StateTime) int {
		if m.Text != nil {
			return strings.Compare(a.State, b.State)
		}
		x, _ := strconv.Atoi(a.State)
		y, _ := strconv.Atoi(b.State)
		return x - y
	})
	return out
}

func statesDiffer(got, want *window.States) string {
	text := func(s *window.States) string {
		if s == nil {
			return "no states"
		}
		out := fmt.Sprintf("%d transitions, unknown for %v, %q to %q", s.Transitions, s.Unknown, s.First, s.Last)
		for _, t := range s.Times {
			out += fmt.Sprintf("; %q for %v, entered %d times", t.State, t.Time, t.Entered)
		}
		return out
	}
	if g, w := text(got), text(want); g != w {
		return fmt.Sprintf("%s\nwant %s", g, w)
	}
	return ""
}

func mode(t time.Time, name string) pointOrError {
	return pointOrError{p: tsdb.Point[telemetry]{Time: t, Value: telemetry{mode: &name}}}
}

// TestStatesOfHours: a state that lasts through hours without a point counts in each of them if they are in the answer,
// and no longer than MaxGap.
func TestStatesOfHours(t *testing.T) {
	noon := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	door := history{mode(noon.Add(-20*time.Minute), "open"), mode(noon.Add(30*time.Minute), "closed")}
	in := tsdb.Between(noon, noon.Add(3*time.Hour))
	for maxGap, want := range map[time.Duration]string{
		0:         "open 30m0s closed 30m0s unknown 0s, open 0s closed 1h0m0s unknown 0s, open 0s closed 1h0m0s unknown 0s, ",
		time.Hour: "open 30m0s closed 30m0s unknown 0s, open 0s closed 30m0s unknown 30m0s, open 0s closed 0s unknown 1h0m0s, ",
	} {
		byHour, err := window.New(window.Every(time.Hour), []window.Measure[telemetry]{
			{Name: "door", Kind: window.State, Text: telemetry.state, MaxGap: maxGap},
		}, window.Options{Gaps: window.Null})
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for b, err := range byHour.Read(t.Context(), door, tsdb.Entity{}, in, tsdb.OldestFirst) {
			if err != nil {
				t.Fatal(err)
			}
			s := b.Values[0].States
			got += fmt.Sprintf("open %v closed %v unknown %v, ", s.Time("open"), s.Time("closed"), s.Unknown)
		}
		if got != want {
			t.Errorf("with MaxGap %v the hours have\n %s\nwant %s", maxGap, got, want)
		}
	}
}

func TestStatesAreDefined(t *testing.T) {
	number := func(v telemetry) (float64, bool) { return number(v.gauge) }
	for name, m := range map[string]window.Measure[telemetry]{
		"Kind of measure 0 is gauge; want State with Text":                {Text: telemetry.state},
		"Aggregates of measure 0 is durations with Of; want Text or":      {Kind: window.State, Of: number, Aggregates: window.Durations},
		"Aggregates of measure 0 is durations of a gauge; want some":      {Of: number, Aggregates: window.Durations},
		"Aggregates of measure 0 is durations of a counter; want some":    {Kind: window.Counter, Of: number, Aggregates: window.Durations},
		"Aggregates of measure 0 is integral of a state; want some":       {Kind: window.State, Text: telemetry.state, Aggregates: window.Integral},
		"MaxGap of measure 0 is 1h0m0s; want 0 without Integral or":       {Kind: window.State, Int: telemetry.level, MaxGap: time.Hour},
		"Of, Int, Text and Value of measure 0 is 2 of them set; want one": {Kind: window.State, Text: telemetry.state, Int: telemetry.level},
		"Linear of measure 0 is true; want false without Integral":        {Kind: window.State, Text: telemetry.state, Linear: true},
	} {
		m.Name = "m"
		_, err := window.New(window.Days(1), []window.Measure[telemetry]{m}, window.Options{})
		if !errors.Is(err, tsdb.ErrInvalid) || !strings.Contains(err.Error(), name) {
			t.Errorf("got %v, want %q", err, name)
		}
	}
}

// TestTooManyStates: a measure that is not a state, such as a free text, ends the sequence before it fills the memory.
func TestTooManyStates(t *testing.T) {
	for extra, want := range []string{"<nil>", "states of measure m is more than 1000; want up to 1000 different ones"} {
		var h history
		for i := range window.MaxStates + extra {
			h = append(h, mode(time.Unix(int64(i)*3600, 0), strconv.Itoa(i)))
		}
		h = append(h, h...)
		for i := range h {
			h[i].p.Time = time.Unix(int64(i)*3600, 0)
		}
		agg, err := window.New(window.Days(1), []window.Measure[telemetry]{{Name: "m", Kind: window.State, Text: telemetry.state}}, window.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, err = range agg.Read(t.Context(), h, tsdb.Entity{}, tsdb.AllTime(), tsdb.OldestFirst) { //nolint:revive // the loop keeps the last error
		}
		if !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("with %d states: %v, want %s", window.MaxStates+extra, err, want)
		}
	}
}

func TestStatesJSON(t *testing.T) {
	noon := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	byDay, err := window.New(window.Days(1), []window.Measure[telemetry]{{Name: "m", Kind: window.State, Text: telemetry.state, MaxGap: 2 * time.Hour}}, window.Options{})
	if err != nil {
		t.Fatal(err)
	}
	h := history{mode(noon.Add(-time.Hour), "on"), mode(noon, "off")}
	for b, err := range byDay.Read(t.Context(), h, tsdb.Entity{}, tsdb.Since(noon.Add(-time.Hour))) {
		got, jsonErr := json.Marshal(b.Values[0].States)
		want := `{"times":[{"state":"off","time_s":7200,"entered":1},{"state":"on","time_s":3600,"entered":0}],"transitions":1,"unknown_s":36000,"first":"on","last":"off"}`
		if err != nil || jsonErr != nil || string(got) != want {
			t.Errorf("got %s, %v, %v, want %s", got, err, jsonErr, want)
		}
		if duty := b.Values[0].States.Time("off").Seconds() / (b.Values[0].States.Time("off").Seconds() + b.Values[0].States.Time("on").Seconds()); math.Abs(duty-2.0/3) > 1e-12 {
			t.Errorf("got a duty cycle of %v, want 2/3 of the known time", duty)
		}
	}
	var none *window.States
	if none.Time("on") != (window.Span{}) {
		t.Error("states that were not computed have times")
	}
}
