package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/prompb"
)

// TestStartAndEnd: series, labels and values are those that have samples between start and end, rounded to five
// minutes.
func TestStartAndEnd(t *testing.T) {
	s := mappedOver(t, someLimits, truckData)
	base := time.UnixMilli(start0)
	s.now = func() time.Time { return base.Add(10 * time.Hour) }
	hour := func(n float64) int64 { return start0 + int64(n*3_600_000) }
	for _, tt := range []struct {
		truck string
		at    []float64 // in hours
	}{{"old", []float64{1}}, {"new", []float64{9.5}}, {"both", []float64{1, 9.5}}, {"middle", []float64{5}}} {
		ts := line("m", []string{"truck", tt.truck})
		for _, at := range tt.at {
			ts.Samples = append(ts.Samples, prompb.Sample{Timestamp: hour(at), Value: 1})
			putPoints(t, s, truckData, acme, truckPoint("East", tt.truck, hour(at), "Andy", 50))
		}
		s.put("a", ts)
	}
	for _, tt := range []struct {
		from, to float64
		want     string
	}{
		{0, 10, "both,middle,new,old"},
		{4, 10, "both,middle,new"},
		{9, 10, "both,new"},
		{9.9, 10, ""},
		{0.9, 1.1, "both,old"},
		{4, 6, "middle"},
		{2, 4, ""},
		{0, 0.5, ""},
		{0, 9.999, "both,middle,new,old"},
		{1.01, 1.02, "both,old"}, // the five minutes from one o'clock
	} {
		for _, metric := range []string{"m", "trucks_speed", "trucks_info"} {
			pairs := []string{"match[]", metric, "start", fmt.Sprint(hour(tt.from) / 1000), "end", fmt.Sprint(hour(tt.to) / 1000)}
			want := `{"status":"success","data":[]}`
			if tt.want != "" {
				want = `{"status":"success","data":["` + strings.ReplaceAll(tt.want, ",", `","`) + `"]}`
			}
			if _, got := s.get("label/truck/values", pairs...); got != want {
				t.Errorf("values of %s from %v to %v: %s, want %s", metric, tt.from, tt.to, got, want)
			}
			_, got := s.get("series", pairs...)
			if n := strings.Count(got, "__name__"); n != len(strings.FieldsFunc(tt.want, func(c rune) bool { return c == ',' })) {
				t.Errorf("series of %s from %v to %v: %s", metric, tt.from, tt.to, got)
			}
			if _, got := s.get("labels", pairs...); strings.Contains(got, "truck") != (tt.want != "") {
				t.Errorf("labels of %s from %v to %v: %s", metric, tt.from, tt.to, got)
			}
		}
	}
	// A series that is written is found at once, also by a list that was read before.
	s.put("a", prompb.TimeSeries{Labels: line("m", []string{"truck", "later"}).Labels, Samples: []prompb.Sample{{Timestamp: hour(9.8)}}})
	if _, got := s.get("label/truck/values", "match[]", "m", "start", fmt.Sprint(hour(9)/1000)); !strings.Contains(got, "later") {
		t.Errorf("a new series is missing in %s", got)
	}
}

// TestSpans: requests that come one after the other ask for the same span, so that lists are cached, and an end in the
// past does not cost a request for each of many series.
func TestSpans(t *testing.T) {
	now := time.UnixMilli(start0).Add(2 * time.Minute)
	first, second := spanOf(now.Add(-time.Hour), now, now), spanOf(now.Add(-time.Hour+2*time.Minute), now.Add(2*time.Minute), now.Add(2*time.Minute))
	if first != second || first.ends() || first.from > now.Add(-time.Hour).UnixMilli() {
		t.Errorf("the last hour is %v, and two minutes later %v", first, second)
	}
	if got := spanOf(firstTime, lastTime, now); got != (span{}) {
		t.Errorf("all time is %v", got)
	}
	past := spanOf(now.Add(-2*time.Hour), now.Add(-time.Hour), now)
	if !past.ends() || past.to < now.Add(-time.Hour).UnixMilli() || past.of(mostEnded) != past || past.of(mostEnded+1).ends() {
		t.Errorf("a past hour is %v", past)
	}
	for _, ms := range []int64{-5, -listStep, -1000 * listStep} {
		if got := spanOf(firstTime, time.UnixMilli(ms), now); got.to < 0 || !got.ends() {
			t.Errorf("before all samples, to %d ms: %v", ms, got)
		}
	}
}
