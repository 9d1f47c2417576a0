package aggregate

import (
	"fmt"
	"time"

	"github.com/tidemark-go/tidemark/internal/instant"
	"github.com/tidemark-go/tidemark/tsdb/window"
)

// ParseTime returns the time of a text: RFC 3339, or a date or a time without an offset, which are in the zone. A date
// is the first instant at which the zone's calendar shows it. A time that the zone's clock shows twice or never is one
// of the two around the change: give it an offset.
func ParseTime(text string, zone *time.Location) (time.Time, error) {
	for _, layout := range []string{"2006-01-02T15:04:05.999999999", "2006-01-02T15:04"} {
		if t, err := time.ParseInLocation(layout, text, zone); err == nil {
			return t, nil
		}
	}
	date, err := time.Parse(time.DateOnly, text)
	if err != nil {
		t, err := instant.Parse(text)
		if err != nil {
			return t, fmt.Errorf("%.64q is not a time; want a date such as 2026-11-01, a time such as 2026-11-01T12:00, or one with an offset such as 2026-11-01T12:00:00Z or 2026-11-01T12:00:00+01:00", text)
		}
		return t, nil
	}
	days := window.Days(1).In(zone)
	start := days.Start(time.Date(date.Year(), date.Month(), date.Day(), 12, 0, 0, 0, zone))
	if y, m, d := start.Date(); time.Date(y, m, d, 0, 0, 0, 0, time.UTC).Before(date) { // the zone's calendar skips the date
		start = days.Next(start)
	}
	return start, nil
}
