package tour

import (
	"math"
	"slices"
	"testing"
	"time"
)

var noon = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

// TestVehiclesAreRealistic follows some vehicles for hours: no value leaves its range or jumps, and everything that can
// happen does.
func TestVehiclesAreRealistic(t *testing.T) {
	seen := map[string]int{}
	const step = 2 * time.Second
	for i := range 20 {
		v := newVehicle(1, i)
		var last reading
		for at := noon; at.Before(noon.Add(3 * time.Hour)); at = at.Add(step) {
			r := v.measure(at)
			for name, x := range map[string][3]float64{
				"speed": {r.Speed, 0, 160}, "battery": {r.Battery, 10, 96}, "motor": {r.Motor, 0, 125},
				"lat": {r.Lat, v.depot.lat - 0.13, v.depot.lat + 0.13}, "lon": {r.Lon, v.depot.lon - 0.25, v.depot.lon + 0.25},
			} {
				if math.IsNaN(x[0]) || x[0] < x[1] || x[0] > x[2] {
					t.Fatalf("%s at %v: %s is %v, want %v to %v", v.name, at, name, x[0], x[1], x[2])
				}
			}
			if (r.State == "moving") != (r.Speed > 0) && r.State != "moving" || (r.State == "fault") != (r.Fault != "") {
				t.Fatalf("%s at %v: %+v", v.name, at, r)
			}
			if at.After(noon) {
				km := math.Hypot((r.Lat-last.Lat)*111, (r.Lon-last.Lon)*111*math.Cos(r.Lat*math.Pi/180))
				if r.Odometer < last.Odometer || math.Abs(r.Battery-last.Battery) > 2 || math.Abs(r.Motor-last.Motor) > 6 || km > 0.2 {
					t.Fatalf("%s at %v jumps from %+v to %+v", v.name, at, last, r)
				}
			}
			last = r
			seen[r.State+r.Fault]++
			seen[[]string{"none", "fault", "offline", "off"}[v.at(at).trouble]]++
		}
		if again := newVehicle(1, i); again != v {
			t.Errorf("vehicle %d differs between two calls", i)
		}
	}
	for _, what := range []string{"moving", "charging", "parked", "faultmotor too hot", "faultbrake pressure low", "faulttyre pressure low", "offline", "off"} {
		if seen[what] == 0 {
			t.Errorf("%s never happened: %v", what, seen)
		}
	}
	if v, w := newVehicle(1, 0), newVehicle(2, 0); v == w {
		t.Error("another seed gives the same vehicle")
	}
}

// TestMessagesComeOnceAndLateOnesToo: however the time is cut, the same messages are sent, each reading once; what a
// vehicle recorded without a network comes late, and what it did not record never.
func TestMessagesComeOnceAndLateOnesToo(t *testing.T) {
	f := newFleet(3, 30, 10*time.Second)
	end := noon.Add(time.Hour)
	whole := slices.Collect(f.sent(noon, end))
	var parts []message
	for at := noon; at.Before(end); at = at.Add(7 * time.Second) {
		parts = slices.AppendSeq(parts, f.sent(at, min2(at.Add(7*time.Second), end)))
	}
	if !slices.Equal(whole, parts) {
		t.Fatalf("%d messages in one piece, %d in small ones", len(whole), len(parts))
	}
	got := map[message]bool{}
	late, latest := 0, map[*vehicle]time.Time{}
	for _, m := range whole {
		if got[m] {
			t.Errorf("%s sends its reading of %v twice", m.vehicle.name, m.time)
		}
		got[m] = true
		p := m.vehicle.at(m.time)
		if p.in(powerOff, m.time) {
			t.Errorf("%s sends a reading of %v, when it was off", m.vehicle.name, m.time)
		}
		if p.in(offline, m.time) {
			late++
		}
		if m.time.Before(latest[m.vehicle]) {
			t.Errorf("%s sends the reading of %v after that of %v", m.vehicle.name, m.time, latest[m.vehicle])
		}
		latest[m.vehicle] = m.time
	}
	if late == 0 {
		t.Error("no message is late")
	}
	// A vehicle that was never off has a reading for each interval, although it was offline meanwhile.
	for i := range f.vehicles {
		v := &f.vehicles[i]
		off, n := false, 0
		for at := noon; at.Before(end); at = at.Add(time.Second) {
			p := v.at(at)
			off = off || p.trouble == powerOff || p.in(offline, end) || p.in(offline, noon)
		}
		for m := range got {
			if m.vehicle == v && m.time.After(noon) { // it may have been offline before noon
				n++
			}
		}
		if !off && n != int(time.Hour/f.every()) {
			t.Errorf("%s has %d readings in an hour, want %d", v.name, n, time.Hour/f.every())
		}
	}
}

func min2(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}
