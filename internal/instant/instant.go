// Package instant writes and reads times as text, also those after the year 9999. RFC 3339 ends there, and time.Time
// then has no JSON; but a table may hold such points. Their year has a sign and at least six digits, as in ISO 8601 and
// in JavaScript: +058803-01-01T00:00:00Z.
package instant

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// Last is the latest time that is accepted on write.
var Last = time.Date(9999, 12, 31, 23, 59, 59, 999_999_999, time.UTC)

const afterYear = "-01-02T15:04:05.999999999Z07:00"

// Text returns a time in its zone, with as many digits of a second as it needs.
func Text(t time.Time) string {
	if year := t.Year(); year < 0 || year > 9999 {
		return fmt.Sprintf("%+07d", year) + t.Format(afterYear)
	}
	return t.Format(time.RFC3339Nano)
}

// Parse returns the time of a text that Text returned, and of any other in RFC 3339. After the year 9999 it is in UTC.
func Parse(text string) (time.Time, error) {
	if !strings.HasPrefix(text, "+") {
		return time.Parse(time.RFC3339Nano, text)
	}
	digits, rest, _ := strings.Cut(text[1:], "-")
	year := 0
	for _, d := range digits {
		if d < '0' || d > '9' || len(digits) < 6 || len(digits) > 9 {
			year = 0
			break
		}
		year = 10*year + int(d-'0')
	}
	like := 2000 + year%400 // the calendar repeats itself every 400 years
	t, err := time.Parse(time.RFC3339Nano, fmt.Sprintf("%04d-%s", like, rest))
	if err != nil || year <= 9999 {
		return time.Time{}, &time.ParseError{Layout: time.RFC3339Nano, Value: text, Message: ": is not a time as in 2026-06-01T12:00:00Z, or +012026-06-01T12:00:00Z after the year 9999"}
	}
	return t.UTC().AddDate(year-like, 0, 0), nil
}

// Time is a time.Time with the text of this package in JSON. Package json omits a zero one where a field says omitzero.
type Time struct{ time.Time }

// MarshalJSON implements json.Marshaler.
func (t Time) MarshalJSON() ([]byte, error) { return json.Marshal(Text(t.Time)) }

// UnmarshalJSON implements json.Unmarshaler. As time.Time does, it leaves null as it is.
func (t *Time) UnmarshalJSON(data []byte) error {
	if string(data) == "null" {
		return nil
	}
	var text string
	err := json.Unmarshal(data, &text)
	if err == nil {
		t.Time, err = Parse(text)
	}
	return err
}

// Between returns the seconds and nanoseconds from one time to a later one. Sub of time.Time ends at 292 years.
func Between(from, to time.Time) (seconds int64, nanos int32) {
	seconds, nanos = to.Unix()-from.Unix(), int32(to.Nanosecond()-from.Nanosecond())
	if nanos < 0 {
		seconds, nanos = seconds-1, nanos+1e9
	}
	return seconds, nanos
}

// Seconds returns the seconds from one time to another, negative if that is earlier.
func Seconds(from, to time.Time) float64 {
	seconds, nanos := Between(from, to)
	return float64(seconds) + float64(nanos)/1e9
}
