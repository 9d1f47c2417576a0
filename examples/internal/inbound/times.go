package inbound

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/tidemark-go/tidemark/codec"
	"github.com/tidemark-go/tidemark/internal/instant"
)

// takeTime returns the time of a message, and removes its field.
func (r *Route) takeTime(o *object, m Message, bounds *Bounds) (Stamp, error) {
	if r.time == timeArrival {
		return At(m.Arrived.Truncate(r.cut)), nil
	}
	v, ok := o.values[r.time]
	if !ok {
		return Stamp{}, badSyntax("the field %q with the time is missing", r.time)
	}
	delete(o.values, r.time)
	text, isText := v.(string)
	if n, isNumber := v.(json.Number); isNumber {
		text = n.String()
	} else if typed := codec.ValueOf(v); !isText && (typed.AsNumber() != typed || typed.Kind() == codec.KindInvalid) {
		return Stamp{}, badTime("the time is neither a text nor a number")
	} else if !isText {
		text, _ = typed.Text()
	}
	number, isNumber := codec.ParseNumber(text)
	switch {
	case isNumber && (r.unit != 0 || r.auto):
		if strings.ContainsAny(text, "eE") {
			text, _ = number.Text()
		}
		s, err := r.unixTime(text, bounds)
		s.field = r.time
		return s, err
	case !isText:
		return Stamp{}, badTime("the time is the number %.64q, and the route names no unit; want time=%s,ms or time=%s,auto", text, r.time, r.time)
	}
	at, err := parseTime(text, r.zone)
	return Stamp{at: at, field: r.time}, err
}

func badTime(format string, args ...any) error {
	return &Error{ReasonTime, fmt.Errorf(format, args...)}
}

// unixTime returns the time of a decimal number since 1970, in the route's unit. With auto it is the unit in which the
// time is within the bounds; of several, the one in which it is the closest to now.
func (r *Route) unixTime(text string, bounds *Bounds) (Stamp, error) {
	if !r.auto {
		return unixTime(text, r.unit)
	}
	now := bounds.Clock()
	var best Stamp
	for _, unit := range units {
		s, err := unixTime(text, unit)
		if err != nil {
			return Stamp{}, err
		}
		if bounds.fit(s.at, now) && !s.at.After(instant.Last) && (best.unit == 0 || s.at.Sub(now).Abs() < best.at.Sub(now).Abs()) {
			best = s
		}
	}
	if best.unit == 0 {
		return Stamp{}, badTime("the time %.64q is in no unit between %s and what -max-future allows; want s, ms, us or ns since 1970", text, timeText(bounds.NotBefore))
	}
	return best, nil
}

// unixTime returns the time of a decimal number of units. It is exact, and drops what is less than a nanosecond.
func unixTime(text string, unit time.Duration) (Stamp, error) {
	whole, fraction, _ := strings.Cut(text, ".")
	n, err := strconv.ParseInt(whole, 10, 64)
	if err != nil {
		return Stamp{}, badTime("the time %.64q is not a decimal number that fits 64 bits", text)
	}
	var part time.Duration
	for step := unit / 10; fraction != "" && step > 0; step /= 10 {
		digit := time.Duration(fraction[0] - '0')
		if digit < 0 || digit > 9 {
			return Stamp{}, badTime("the time %.64q is not a decimal number", text)
		}
		part += digit * step
		fraction = fraction[1:]
	}
	if strings.Trim(fraction, "0123456789") != "" {
		return Stamp{}, badTime("the time %.64q is not a decimal number", text)
	}
	if strings.HasPrefix(text, "-") {
		part = -part
	}
	s := Unix(n, unit)
	s.at = s.at.Add(part)
	return s, nil
}

// local is the form of a date and a time. A fraction of a second may follow, of any length.
const local = "2006-01-02T15:04:05"

// parseTime returns the time of a text: RFC 3339 in any case, also with a space in the place of T, and with an offset
// of +02, +0200 or +02:00. A text without an offset, also a date alone, is in the zone; nil refuses it.
func parseTime(text string, zone *time.Location) (time.Time, error) {
	if at, err := instant.Parse(text); err == nil {
		return at, nil
	}
	form := strings.ToUpper(strings.TrimSpace(text))
	if n := len(time.DateOnly); len(form) > n {
		clock := strings.TrimPrefix(strings.ReplaceAll(form[n:], " ", ""), "T")
		if utc, ok := strings.CutSuffix(clock, "UTC"); ok {
			clock = utc + "Z"
		}
		form = form[:n] + "T" + clock
	}
	for _, offset := range []string{"Z07:00", "Z0700", "Z07"} {
		if at, err := time.Parse(local+offset, form); err == nil {
			return at, nil
		}
	}
	wall, err := time.Parse(local, form)
	if err != nil {
		wall, err = time.Parse(time.DateOnly, form)
	}
	switch {
	case err != nil:
		return time.Time{}, badTime("the time %.64q is not RFC 3339, as 2026-01-02T15:04:05Z is", text)
	case zone == nil:
		return time.Time{}, badTime("the time %.64q has no zone; want an offset, or a route with zone=UTC or zone=Europe/Berlin", text)
	}
	return inZone(wall, zone)
}

// inZone returns the time at which clocks of a zone show a date and a time, the earlier one if they show it twice. A
// time that they skip is refused.
func inZone(wall time.Time, zone *time.Location) (time.Time, error) {
	for _, near := range []time.Duration{-24 * time.Hour, 24 * time.Hour} { // the offsets before and after a change
		_, offset := wall.Add(near).In(zone).Zone()
		at := wall.Add(-time.Duration(offset) * time.Second).In(zone)
		if _, is := at.Zone(); is == offset {
			return at, nil
		}
	}
	return time.Time{}, badTime("clocks in %s skip the time %s", zone, wall.Format(local))
}
