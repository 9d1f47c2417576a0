package window

import (
	"fmt"
	"strconv"
	"time"

	"github.com/tidemark-go/tidemark/internal/invalid"
)

// unit is what the width of a grid is counted in.
type unit uint8

const (
	noUnit  unit = iota
	clock        // nanoseconds, by the clock of the zone
	elapsed      // nanoseconds, from the epoch
	days
	weeks
	months
)

// day is the time that widths by the clock divide.
const day = 24 * time.Hour

// maxCount is the largest number of days, weeks or months in one bucket.
const maxCount = 10_000

// Grid divides all of time into buckets: each starts where the one before it ends. [Every], [Days], [Weeks] and [Months]
// make one in UTC, [Grid.In] moves it into a time zone, whose changes of the clock it follows. Constructors do not fail;
// whatever takes a grid reports a bad one as [ErrInvalid], and so does [Grid.Check]. The zero Grid is invalid.
//
// Start, Next and Prev take times in the years 1 to 9999, and return other times, and all times on an invalid grid, as they
// are. They cost a few look-ups in the zone's table and no allocation. What they return is in the grid's zone.
//
// A Grid is a value: comparable, and safe for concurrent use.
type Grid struct {
	unit  unit
	n     int64
	first time.Weekday
	zone  *time.Location // nil is UTC
}

// Every returns the grid of buckets of one width.
//
// A width that divides 24 hours follows the clock of the grid's zone: a bucket starts whenever that clock shows a multiple of
// the width since midnight, or is put forward over one. So hours start on the full hour of the zone, wherever it lies to UTC;
// a day of 23 or 25 hours has 23 or 25 of them, the repeated one twice; and buckets of 6 hours always start at 0, 6, 12 and 18
// o'clock. A bucket into which a change of the clock falls is longer or shorter by it. Every(24*time.Hour) is Days(1).
//
// Any other width is counted from 1970-01-01 00:00 UTC, and refused in any other zone than UTC: its buckets would start at
// another time each day. For several days see [Days].
func Every(width time.Duration) Grid {
	switch {
	case width == day:
		return Days(1)
	case width > 0 && day%width != 0:
		return Grid{unit: elapsed, n: int64(width)}
	}
	return Grid{unit: clock, n: int64(width)}
}

// Days returns the grid of buckets of n days, 1 to 10,000. Days are those of the grid's zone, 23 or 25 hours long where its
// clock is changed, and start when its calendar first shows a date: usually at midnight, or at 1 o'clock where the clock is put
// forward at midnight. Of several days a bucket, the first one starts on 1970-01-01.
func Days(n int) Grid { return Grid{unit: days, n: int64(n)} }

// Weeks returns the grid of buckets of n weeks, 1 to 10,000, that start on a weekday, as [Days] start. Of several weeks a
// bucket, one starts on the first such weekday of 1970.
func Weeks(n int, first time.Weekday) Grid { return Grid{unit: weeks, n: int64(n), first: first} }

// Months returns the grid of buckets of n calendar months, 1 to 10,000, that start as [Days] start: 3 are quarters, 12 are
// years. They are counted from January 1970.
func Months(n int) Grid { return Grid{unit: months, n: int64(n)} }

// In returns the grid in a time zone; nil is UTC.
func (g Grid) In(zone *time.Location) Grid {
	if zone == time.UTC {
		zone = nil
	}
	g.zone = zone
	return g
}

// Check returns what is wrong with the grid, an error that matches [ErrInvalid], or nil.
func (g Grid) Check() error {
	switch {
	case g.unit == noUnit:
		return invalid.New(ErrInvalid, "grid", "zero", "one from Every, Days, Weeks or Months")
	case g.unit == clock || g.unit == elapsed:
		if g.n <= 0 {
			return invalid.New(ErrInvalid, "width", time.Duration(g.n).String(), "more than 0")
		}
		if g.unit == elapsed && g.zone != nil {
			return invalid.New(ErrInvalid, "width", time.Duration(g.n).String()+" in "+g.zone.String(), "one that divides 24h, or days, or UTC")
		}
		return nil
	case g.n < 1 || g.n > maxCount:
		return invalid.New(ErrInvalid, "number of "+g.unit.String(), strconv.FormatInt(g.n, 10), "1 to "+strconv.Itoa(maxCount))
	case g.first < time.Sunday || g.first > time.Saturday:
		return invalid.New(ErrInvalid, "first day of the week", strconv.Itoa(int(g.first)), "Sunday to Saturday")
	}
	return nil
}

// Start returns when the bucket that t is in starts.
func (g Grid) Start(t time.Time) time.Time {
	start, _ := g.Bucket(t)
	return start
}

// Next returns when the bucket after that of t starts, which is when that of t ends.
func (g Grid) Next(t time.Time) time.Time {
	_, next := g.Bucket(t)
	return next
}

// Prev returns when the bucket before that of t starts.
func (g Grid) Prev(t time.Time) time.Time {
	return g.Start(g.Start(t).Add(-1))
}

// Bucket returns what Start and Next do, in one step.
func (g Grid) Bucket(t time.Time) (start, next time.Time) {
	if !inCalendar(t) || g.Check() != nil {
		return t, t
	}
	t = t.In(g.location())
	switch g.unit {
	case clock:
		return g.clockStart(t), g.clockNext(t)
	case elapsed:
		start = t.Add(-sinceEpoch(t, time.Duration(g.n)))
		return start, start.Add(time.Duration(g.n))
	}
	return g.dates(t)
}

// inCalendar reports whether a time can be written as RFC 3339 has it.
func inCalendar(t time.Time) bool {
	year := t.UTC().Year()
	return year >= 1 && year <= 9999
}

func (g Grid) location() *time.Location {
	if g.zone == nil {
		return time.UTC
	}
	return g.zone
}

// String returns the width as [Parse] reads it, and the zone.
func (g Grid) String() string {
	var width string
	switch g.unit {
	case noUnit:
		return "no grid"
	case clock, elapsed:
		width = time.Duration(g.n).String()
	case weeks:
		width = strconv.FormatInt(g.n, 10) + g.unit.suffix()
		if g.first != time.Monday {
			width += fmt.Sprintf(" from %v", g.first)
		}
	default:
		width = strconv.FormatInt(g.n, 10) + g.unit.suffix()
	}
	if g.zone == nil {
		return width
	}
	return width + " in " + g.zone.String()
}

func (u unit) String() string {
	return [...]string{"no unit", "clock time", "elapsed time", "days", "weeks", "months"}[u]
}

// suffix is how Parse knows the unit.
func (u unit) suffix() string {
	return [...]string{days: "d", weeks: "w", months: "mo"}[u]
}
