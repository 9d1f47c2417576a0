package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

// TestDatesAreInTheZone: with --zone, a date begins and ends with the day of the zone, also where the clock changes.
func TestDatesAreInTheZone(t *testing.T) {
	dir := metered(t, 1)
	const m2 = " meters acme street=main meter=m2"
	for _, tt := range []struct {
		flags, first, last string
		windows            int
	}{
		{"--every 1d --from 2026-11-21 --to 2026-11-23", "2026-11-21T00:00:00Z", "2026-11-23T00:00:00Z", 2},
		{"--every 1d --zone Asia/Kolkata --from 2026-11-21 --to 2026-11-23", "2026-11-20T18:30:00Z", "2026-11-22T18:30:00Z", 2},
		{"--every 1h --zone Asia/Kolkata --from 2026-11-21T06:00 --to 2026-11-21T08:00", "2026-11-21T00:30:00Z", "2026-11-21T02:30:00Z", 2},
		{"--every 1h --zone Asia/Kolkata --from 2026-11-21T06:00:00+05:30 --to 2026-11-21T02:30:00Z", "2026-11-21T00:30:00Z", "2026-11-21T02:30:00Z", 2},
		{"--every 1h --zone Europe/Berlin --from 2026-03-29 --to 2026-03-30", "2026-03-28T23:00:00Z", "2026-03-29T22:00:00Z", 23},
		{"--every 1h --zone Europe/Berlin --from 2026-10-25 --to 2026-10-26", "2026-10-24T22:00:00Z", "2026-10-25T23:00:00Z", 25},
	} {
		command := "windows --gaps null --measure volts "
		out, _, err := tidectl(t, t.Context(), "", strings.Fields("--dir "+dir+" -o json "+command+tt.flags+m2)...)
		want(t, 0, err, command+tt.flags)
		var first, last time.Time
		n := 0
		for line := range strings.Lines(out) {
			var w struct {
				Start, End time.Time
				Partial    bool
			}
			if err := json.Unmarshal([]byte(line), &w); err != nil || w.Partial {
				t.Errorf("%s%s: a window is %s, %v; want a whole one", command, tt.flags, line, err)
			}
			if last = w.End; n == 0 {
				first = w.Start
			}
			n++
		}
		if n != tt.windows || first.UTC().Format(time.RFC3339) != tt.first || last.UTC().Format(time.RFC3339) != tt.last {
			t.Errorf("%s%s: %d windows from %v to %v; want %d from %s to %s", command, tt.flags, n, first.UTC(), last.UTC(), tt.windows, tt.first, tt.last)
		}
	}
}
