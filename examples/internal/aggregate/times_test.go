package aggregate_test

import (
	"testing"
	"time"
	_ "time/tzdata"

	"github.com/tidemark-go/tidemark/examples/internal/aggregate"
)

// TestParseTime: a date is a day of the zone, also where the clock changes at midnight or the calendar skips a day.
func TestParseTime(t *testing.T) {
	for _, tt := range []struct{ text, zone, want string }{
		{"2026-11-21", "UTC", "2026-11-21T00:00:00Z"},
		{"2026-11-21", "Asia/Kolkata", "2026-11-20T18:30:00Z"},
		{"2026-11-21T06:00", "Asia/Kolkata", "2026-11-21T00:30:00Z"},
		{"2026-11-21T06:00:01.5", "Asia/Kolkata", "2026-11-21T00:30:01.5Z"},
		{"2026-11-21T06:00:00Z", "Asia/Kolkata", "2026-11-21T06:00:00Z"},
		{"2026-11-21T06:00:00+01:00", "Asia/Kolkata", "2026-11-21T05:00:00Z"},
		{"2026-03-29", "Europe/Berlin", "2026-03-28T23:00:00Z"}, // 23 hours
		{"2026-03-30", "Europe/Berlin", "2026-03-29T22:00:00Z"},
		{"2026-10-25", "Europe/Berlin", "2026-10-24T22:00:00Z"}, // 25 hours
		{"2026-10-26", "Europe/Berlin", "2026-10-25T23:00:00Z"},
		{"2018-11-04", "America/Sao_Paulo", "2018-11-04T03:00:00Z"}, // begins at 1 o'clock
		{"2018-02-18", "America/Sao_Paulo", "2018-02-18T03:00:00Z"}, // the hour before midnight came twice
		{"2026-09-06", "America/Santiago", "2026-09-06T04:00:00Z"},
		{"2011-12-29", "Pacific/Apia", "2011-12-29T10:00:00Z"},
		{"2011-12-30", "Pacific/Apia", "2011-12-30T10:00:00Z"}, // there was none
		{"2011-12-31", "Pacific/Apia", "2011-12-30T10:00:00Z"},
		{"+058803-02-28T01:02:03Z", "Asia/Kolkata", "+058803-02-28T01:02:03Z"},
	} {
		zone, err := time.LoadLocation(tt.zone)
		if err != nil {
			t.Fatal(err)
		}
		if at, err := aggregate.ParseTime(tt.text, zone); err != nil || aggregate.Instant(at) != tt.want {
			t.Errorf("%s in %s is %v, %v; want %s", tt.text, tt.zone, aggregate.Instant(at), err, tt.want)
		}
	}
	for _, text := range []string{"", "yesterday", "2026-02-30", "2026-11-21 06:00", "2026-11-21T25:00", "1780315200", "2026-11"} {
		if at, err := aggregate.ParseTime(text, time.UTC); err == nil {
			t.Errorf("%q is %v; want an error", text, at)
		}
	}
}
