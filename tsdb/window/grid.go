package window

import (
	"fmt"
	"strconv"
	"time"

	"github.com/tidemark-go/tidemark/internal/invalid"
	"github.com/tidemark-go/tidemark/tsdb"
)

// unit is the unit of a grid's width.
type unit uint8

const (
	noUnit  unit = iota
	clock        // nanoseconds, by the clock of the zone
	elapsed      // nanoseconds, from the epoch
	days
	weeks
	months
)

// day is a multiple of each width that follows the clock.
const day = 24 * time.Hour

// maxCount is the largest number of days, weeks or months in one bucket.
const maxCount = 10_000

// Grid divides all of time into buckets without gaps between them. [Every], [Days], [Weeks] and [Months] make a grid
// in UTC. [Grid.In] moves it into a time zone; the grid then follows the zone's clock changes. Constructors do not
// fail: [Grid.Check] and every function with a Grid argument report a bad grid as tsdb.ErrInvalid. The zero Grid is
// invalid.
//
// Start and Next accept times in the years 1 to 294247, the last one in a row key. They return other times unchanged,
// and on an invalid grid all times. They cost a few look-ups in the zone's table and no allocation. Their results are
// in the grid's zone.
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
// A width that divides 24 hours follows the clock of the grid's zone. A bucket starts when that clock shows a
// multiple of the width since midnight, or is put forward over one. So hours start on the full hour of the zone,
// whatever its offset from UTC. A day of 23 or 25 hours has 23 or 25 hourly buckets, and the repeated hour has two.
// Buckets of 6 hours always start at 0, 6, 12 and 18 o'clock. A bucket that contains a clock change is longer or
// shorter by that change. Every(24*time.Hour) is Days(1).
//
// Any other width is counted from 1970-01-01 00:00 UTC. It is invalid in any other zone than UTC, because its buckets
// would start at another time each day. For several days see [Days].
func Every(width time.Duration) Grid {
	switch {
	case width == day:
		return Days(1)
	case width > 0 && day%width != 0:
		return Grid{unit: elapsed, n: int64(width)}
	}
	return Grid{unit: clock, n: int64(width)}
}

// Days returns the grid of buckets of n days, 1 to 10,000. Days are those of the grid's zone: they have 23 or 25
// hours if the clock changes. A day starts when the zone's calendar first shows its date. That is usually midnight,
// or 1 o'clock if the clock is put forward at midnight. For n above 1, one bucket starts on 1970-01-01.
func Days(n int) Grid { return Grid{unit: days, n: int64(n)} }

// Weeks returns the grid of buckets of n weeks, 1 to 10,000. They start on a weekday, at the same instant as [Days].
// For n above 1, one bucket starts on the first such weekday of 1970.
func Weeks(n int, first time.Weekday) Grid { return Grid{unit: weeks, n: int64(n), first: first} }

// Months returns the grid of buckets of n calendar months, 1 to 10,000. They start at the same instant as [Days]. For
// n = 3 they are quarters, for n = 12 years. They are counted from January 1970.
func Months(n int) Grid { return Grid{unit: months, n: int64(n)} }

// In returns the grid in a time zone. A nil zone is UTC.
func (g Grid) In(zone *time.Location) Grid {
	if zone == time.UTC {
		zone = nil
	}
	g.zone = zone
	return g
}

// Check returns an error that matches tsdb.ErrInvalid if the grid is invalid, else nil.
func (g Grid) Check() error {
	switch {
	case g.unit == noUnit:
		return invalid.New(tsdb.ErrInvalid, "grid", "the zero value", "a grid from Every, Days, Weeks or Months")
	case g.unit == clock || g.unit == elapsed:
		if g.n <= 0 {
			return invalid.New(tsdb.ErrInvalid, "width", time.Duration(g.n).String(), "more than 0")
		}
		if g.unit == elapsed && g.zone != nil {
			return invalid.New(tsdb.ErrInvalid, "width", time.Duration(g.n).String()+" in "+g.zone.String(), "a width that divides 24h, or days, or UTC")
		}
		return nil
	case g.n < 1 || g.n > maxCount:
		return invalid.New(tsdb.ErrInvalid, "number of "+g.unit.String(), strconv.FormatInt(g.n, 10), "1 to "+strconv.Itoa(maxCount))
	case g.first < time.Sunday || g.first > time.Saturday:
		return invalid.New(tsdb.ErrInvalid, "first day of the week", strconv.Itoa(int(g.first)), "Sunday to Saturday")
	}
	return nil
}

// Start returns the start of the bucket that contains t.
func (g Grid) Start(t time.Time) time.Time {
	start, _ := g.bucket(t)
	return start
}

// Next returns the end of the bucket that contains t, which is the start of the next bucket.
func (g Grid) Next(t time.Time) time.Time {
	_, next := g.bucket(t)
	return next
}

// prev returns the start of the bucket before the one that contains t.
func (g Grid) prev(t time.Time) time.Time {
	return g.Start(g.Start(t).Add(-1))
}

// bucket returns the results of Start and Next with one computation.
func (g Grid) bucket(t time.Time) (start, next time.Time) {
	if !inCalendar(t) || g.Check() != nil {
		return t, t
	}
	t = t.In(g.location())
	switch {
	case g.unit == elapsed, g.unit == clock && g.zone == nil: // the clock of UTC never changes
		start = t.Add(-sinceEpoch(t, time.Duration(g.n)))
		return start, start.Add(time.Duration(g.n))
	case g.unit == clock:
		return g.clockStart(t), g.clockNext(t)
	}
	return g.dates(t)
}

// lastYear is the last year of a grid, and in a row key.
const lastYear = 294_247

// inYears is the limit in errors.
const inYears = "the years 1 to 294247"

// inCalendar reports whether a grid has a bucket for a time.
func inCalendar(t time.Time) bool {
	year := t.UTC().Year()
	return year >= 1 && year <= lastYear
}

func (g Grid) location() *time.Location {
	if g.zone == nil {
		return time.UTC
	}
	return g.zone
}

// String returns the width in the syntax of [Parse], and the zone.
func (g Grid) String() string {
	var width string
	switch g.unit {
	case noUnit:
		return "no grid"
	case clock, elapsed:
		width = time.Duration(g.n).String()
	default:
		width = strconv.FormatInt(g.n, 10) + g.unit.suffix()
		if g.unit == weeks && g.first != time.Monday {
			width += fmt.Sprintf(" from %v", g.first)
		}
	}
	if g.zone == nil {
		return width
	}
	return width + " in " + g.zone.String()
}

func (u unit) String() string {
	return [...]string{"no unit", "clock time", "elapsed time", "days", "weeks", "months"}[u]
}

// suffix returns the unit's suffix in the syntax of Parse.
func (u unit) suffix() string {
	return [...]string{days: "d", weeks: "w", months: "mo"}[u]
}
