package main

import (
	"strconv"
	"strings"
	"testing"
	"time"
)

// plain is the result of a plain pass over the lines for one truck.
type plain struct {
	fleet      string
	location   Location
	located    time.Time
	fuel       float64
	fueled     time.Time
	velocities map[time.Time]float64
	loads      map[time.Time]float64
}

// plainPass reads lines with string functions only, and returns the trucks by name and the newest time.
func plainPass(t *testing.T, text string) (trucks map[string]*plain, now time.Time) {
	t.Helper()
	trucks = map[string]*plain{}
	for l := range strings.Lines(text) {
		parts := strings.Split(strings.TrimSuffix(l, "\n"), " ")
		nanos, err := strconv.ParseInt(parts[2], 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		at := time.Unix(0, nanos).UTC()
		if at.After(now) {
			now = at
		}
		tags, fields := pairs(parts[0]), pairs(parts[1])
		if tags["name"] == "" {
			continue
		}
		p := trucks[tags["name"]]
		if p == nil {
			p = &plain{velocities: map[time.Time]float64{}, loads: map[time.Time]float64{}}
			trucks[tags["name"]] = p
		}
		if tags["fleet"] != "" {
			p.fleet = tags["fleet"]
		}
		p.take(fields, at)
	}
	return trucks, now
}

func (p *plain) take(fields map[string]string, at time.Time) {
	number := func(name string) (float64, bool) {
		x, err := strconv.ParseFloat(strings.Trim(fields[name], `iu"`), 64)
		return x, err == nil
	}
	lat, hasLat := number("latitude")
	long, hasLong := number("longitude")
	if hasLat && hasLong && !at.Before(p.located) {
		p.location, p.located = Location{lat, long}, at
	}
	if x, ok := number("fuel_state"); ok && !at.Before(p.fueled) {
		p.fuel, p.fueled = x, at
	}
	if x, ok := number("velocity"); ok {
		p.velocities[at] = x
	}
	load, ok := number("current_load")
	if capacity, has := number("load_capacity"); ok && has {
		p.loads[at] = load / capacity
	}
}

func pairs(text string) map[string]string {
	m := map[string]string{}
	for pair := range strings.SplitSeq(text, ",") {
		name, value, _ := strings.Cut(pair, "=")
		m[name] = value
	}
	return m
}
